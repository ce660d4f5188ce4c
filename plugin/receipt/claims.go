package receipt

// Claims is the payload of a receipt: docs/spec/receipt.md. Times are seconds
// since the epoch.
type Claims struct {
	Issuer      string            `json:"iss"`
	Subject     string            `json:"sub"`                 // group/Kind/namespace/name
	Generated   bool              `json:"generated,omitempty"` // the last part of sub is a prefix
	Environment string            `json:"environment"`
	Profile     string            `json:"profile"`
	Covers      []string          `json:"covers"` // sorted, no duplicates
	Digest      string            `json:"digest"` // projection digest restricted to covers
	IssuedAt    int64             `json:"iat"`
	Expires     int64             `json:"exp"`
	NotBefore   int64             `json:"nbf,omitempty"`
	ID          string            `json:"jti"` // nonce; what revocation names
	Release     string            `json:"release,omitempty"`
	Approver    string            `json:"approver,omitempty"`
	Leaves      map[string]string `json:"leaves,omitempty"` // "category path" -> short hash; explains, decides nothing
}
