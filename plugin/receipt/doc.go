// Package receipt encodes, signs and verifies receipts: signed statements that
// one Kubernetes object, with the gated fields that it has, may run in one
// environment until a time. It is the only code that makes or verifies
// signatures; docs/spec/receipt.md is the normative text.
//
// Verify answers two questions, whether a known key of a known issuer signed
// these bytes and whether they are a receipt, and returns a Verified, which
// nothing else can make. What a receipt is worth for an object (subject,
// environment, categories, digest, time, revocation) is decided by package
// gate. Here is no clock, no file and no network.
//
// # Format
//
// A receipt is a compact JWS (RFC 7515): three base64url parts without padding,
// separated by dots, at most MaxSize bytes. The protected header is a JSON
// object of exactly three members:
//
//	alg  EdDSA (Ed25519), ES256, ES384, PS256 or RS256
//	kid  selects a key of the issuer, proves nothing
//	typ  syncgate-receipt+jwt
//
// The payload is one JSON object, the members of Claims, and nothing else.
// Sign writes header and payload as RFC 8785 bytes; Verify accepts other
// orders and white space, but no duplicate or unknown member, no invalid
// UTF-8, and only the one base64url spelling of each part.
//
// # Example
//
// The receipt (line breaks added)
//
//	eyJhbGciOiJFZERTQSIsImtpZCI6InJlbGVhc2UtZWQiLCJ0eXAiOiJzeW5jZ2F0ZS1yZWNlaXB0
//	K2p3dCJ9.
//	eyJjb3ZlcnMiOlsiY29tbWFuZCIsImltYWdlIl0sImRpZ2VzdCI6InNoYTI1Njo1ZjcwYmYxOGEw
//	ODYwMDcwMTZlOTQ4YjA0YWVkM2I4MjEwM2EzNmJlYTQxNzU1YjZjZGRmYWYxMGFjZTNjNmVmIiwi
//	ZW52aXJvbm1lbnQiOiJwcm9kIiwiZXhwIjoxNzc1MDAxNjAwLCJpYXQiOjE3NjcyMjU2MDAsImlz
//	cyI6InJlbGVhc2UiLCJqdGkiOiJtSjh3M1FlNVIxdVh6MGFCN2NEOWZnIiwicHJvZmlsZSI6InYx
//	IiwicmVsZWFzZSI6IjEuNSIsInN1YiI6ImFwcHMvRGVwbG95bWVudC9zaG9wL3dlYiJ9.
//	40kDJ5jhiKVT2GiP6lhGCl-n9uYAqOyNAHMKzAYDHaY_z8HF3hgYvuL_G3GAMx_aXQed8ZCEXKXF
//	PV-4qcSCBw
//
// has the header and the claims
//
//	{"alg":"EdDSA","kid":"release-ed","typ":"syncgate-receipt+jwt"}
//
//	{"covers":["command","image"],
//	 "digest":"sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
//	 "environment":"prod","exp":1775001600,"iat":1767225600,"iss":"release",
//	 "jti":"mJ8w3Qe5R1uXz0aB7cD9fg","profile":"v1","release":"1.5",
//	 "sub":"apps/Deployment/shop/web"}
//
// and verifies with the Ed25519 key (RFC 8032)
//
//	m7NqPY27n1zfvj2i8et5iwYtaolnywWSn-WtAo3tQcI
//
// Package vectors has it and many that do not verify, for other
// implementations.
package receipt
