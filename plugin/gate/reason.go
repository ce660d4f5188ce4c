package gate

// A Reason is the stable code of a refusal: it is part of the wire format
// (docs/spec/refusal.md), appears in messages, metrics and audit annotations,
// and never changes its meaning.
type Reason string

// The reason codes. The zero value is not a reason.
const (
	ReceiptMissing      Reason = "ReceiptMissing"
	ReceiptMalformed    Reason = "ReceiptMalformed"
	AlgorithmNotAllowed Reason = "AlgorithmNotAllowed"
	IssuerUnknown       Reason = "IssuerUnknown"
	KeyUnknown          Reason = "KeyUnknown"
	KeyRetired          Reason = "KeyRetired"
	SignatureInvalid    Reason = "SignatureInvalid"
	SubjectMismatch     Reason = "SubjectMismatch"
	EnvironmentMismatch Reason = "EnvironmentMismatch"
	ProfileUnsupported  Reason = "ProfileUnsupported"
	CategoryNotCovered  Reason = "CategoryNotCovered"
	IssuerNotAllowed    Reason = "IssuerNotAllowed"
	ThresholdNotMet     Reason = "ThresholdNotMet"
	DigestMismatch      Reason = "DigestMismatch"
	ReceiptNotYetValid  Reason = "ReceiptNotYetValid"
	ReceiptExpired      Reason = "ReceiptExpired"
	ReceiptRevoked      Reason = "ReceiptRevoked"
	RevocationListStale Reason = "RevocationListStale"
	ImageNotPinned      Reason = "ImageNotPinned"
	ImageTagMoved       Reason = "ImageTagMoved"
	ImageUnresolvable   Reason = "ImageUnresolvable"
	DuplicateObject     Reason = "DuplicateObject"
	EmptyRender         Reason = "EmptyRender"
	ObjectMalformed     Reason = "ObjectMalformed"
	ProtectedTarget     Reason = "ProtectedTarget"
	ForceNotAllowed     Reason = "ForceNotAllowed"
	UnknownImage        Reason = "UnknownImage"
	FieldDefaulted      Reason = "FieldDefaulted"
	FieldDropped        Reason = "FieldDropped"
	RenderFailed        Reason = "RenderFailed"
	PolicyInvalid       Reason = "PolicyInvalid"
	KeysUnavailable     Reason = "KeysUnavailable"
	ClusterUnavailable  Reason = "ClusterUnavailable"
	GateBusy            Reason = "GateBusy"
)
