package gate

// Class says whose turn it is: the first words of a message and the exit
// status of the command line (docs/spec/refusal.md).
type Class int

// The classes. The zero value is a gate error, which also refuses.
const (
	GateError     Class = iota // keys, configuration, registry, cluster: exit 30
	Refused                    // policy: exit 10
	RenderFailure              // the application's manifests: exit 20
)

// Class returns the class of a reason.
func (r Reason) Class() Class {
	switch r {
	case RenderFailed, ObjectMalformed, DuplicateObject, EmptyRender:
		return RenderFailure
	case PolicyInvalid, KeysUnavailable, ClusterUnavailable, GateBusy, ImageUnresolvable:
		return GateError
	}
	for _, known := range order {
		if r == known {
			return Refused
		}
	}
	return GateError
}

// ExitStatus is what the command line ends with.
func (c Class) ExitStatus() int {
	switch c {
	case Refused:
		return 10
	case RenderFailure:
		return 20
	}
	return 30
}

// Words are the first words of a message.
func (c Class) Words() string {
	switch c {
	case Refused:
		return "SYNC REFUSED"
	case RenderFailure:
		return "RENDER FAILED"
	}
	return "GATE ERROR"
}

// order is how reasons are ranked within one message: what must be mended
// first comes first.
var order = []Reason{
	PolicyInvalid, KeysUnavailable, ClusterUnavailable, GateBusy,
	RenderFailed, EmptyRender, DuplicateObject, ObjectMalformed,
	ImageUnresolvable,
	ProtectedTarget, ForceNotAllowed, UnknownImage, ImageNotPinned, ImageTagMoved, FieldDefaulted, FieldDropped,
	ReceiptMissing, ReceiptMalformed, AlgorithmNotAllowed, IssuerUnknown, KeyUnknown, SignatureInvalid,
	IssuerNotAllowed, SubjectMismatch, EnvironmentMismatch, ProfileUnsupported, CategoryNotCovered, DigestMismatch,
	ReceiptNotYetValid, ReceiptExpired, KeyRetired, RevocationListStale, ReceiptRevoked, ThresholdNotMet,
}

func (r Reason) rank() int {
	for i, x := range order {
		if x == r {
			return i
		}
	}
	return -1 // unknown: never overlooked
}

// Reasons returns every reason code, in the order of rank.
func Reasons() []Reason { return append([]Reason(nil), order...) }
