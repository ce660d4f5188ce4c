package receipt

// RevocationList is the payload of a verified revocation list (a JWS of type
// RevocationsType). Serial never decreases.
type RevocationList struct {
	Issued  int64        `json:"issued"`
	Serial  int64        `json:"serial"`
	Entries []Revocation `json:"entries"`
}

// Revocation takes back exactly one of: a receipt by nonce, every receipt of
// a key, every receipt of a release, every object whose image leaves hold an
// image digest, or what a floor says.
type Revocation struct {
	ID      string `json:"jti,omitempty"`
	KeyID   string `json:"kid,omitempty"`
	Release string `json:"release,omitempty"`
	Image   string `json:"image,omitempty"` // sha256:...
	Floor   *Floor `json:"floor,omitempty"`
}

// Floor takes back the receipts for matching subjects that were issued before
// a time. An empty member matches everything.
type Floor struct {
	Subject      string `json:"sub,omitempty"` // glob
	Environment  string `json:"environment,omitempty"`
	Category     string `json:"category,omitempty"`
	IssuedBefore int64  `json:"issuedBefore"`
}
