package cli

import "github.com/syncgate/syncgate/plugin/gate"

type code struct{ means, fix string }

// codes says what each reason means and how to mend it.
var codes = map[gate.Reason]code{
	gate.ReceiptMissing:      {"A gated field of the object has no receipt at all.", "syncgate sign, commit .syncgate; or ask who signs (policy's help says who)."},
	gate.ReceiptMalformed:    {"A receipt is no well-formed compact JWS of this format, or its comment line lies.", "Sign again; look at who changed the file."},
	gate.AlgorithmNotAllowed: {"The receipt's algorithm is not in the issuer's list, or does not fit its key.", "Sign with a key that policy allows for this issuer."},
	gate.IssuerUnknown:       {"Policy has no issuer of the name that the receipt gives.", "Sign as an issuer of this policy, or add the issuer to it."},
	gate.KeyUnknown:          {"The issuer's key set has no key with the receipt's key ID.", "Publish the key in the issuer's key set first, or sign with one that is there."},
	gate.KeyRetired:          {"The receipt's key is retired: what runs goes on, changes need a newer receipt.", "Sign again with the issuer's current key."},
	gate.SignatureInvalid:    {"The signature is not by the key that the receipt names: somebody changed the receipt, or made it up.", "Find out where it came from; sign again."},
	gate.SubjectMismatch:     {"The receipt is for another object.", "Sign this object; a receipt cannot be reused for another one."},
	gate.EnvironmentMismatch: {"The receipt is for another environment.", "Sign for this environment, or let policy accept the other (acceptsEnvironments)."},
	gate.ProfileUnsupported:  {"The receipt was made for a gated-fields profile that this version does not know.", "Use the same version of syncgate to sign and to check."},
	gate.CategoryNotCovered:  {"There are good receipts, but none covers this category.", "Have somebody who may sign the category sign it (syncgate sign)."},
	gate.IssuerNotAllowed:    {"The issuer may not sign this category, subject, environment, or for so long.", "Ask an issuer that policy allows for it."},
	gate.ThresholdNotMet:     {"The category needs more distinct approvals (issuer, key and approver) than there are.", "Have another issuer sign as well."},
	gate.DigestMismatch:      {"The gated fields differ from those that were signed; the message names the first that moved.", "Undo the change, or have it signed: syncgate sign."},
	gate.ReceiptNotYetValid:  {"The receipt's time has not come, or a clock is wrong.", "Wait, or check the clocks (60 s of difference are allowed)."},
	gate.ReceiptExpired:      {"The receipt has expired: what runs goes on, changes need a newer receipt.", "syncgate sign renews it."},
	gate.ReceiptRevoked:      {"The receipt, its key, release or image is on the revocation list.", "Find out why it was revoked; sign what replaces it."},
	gate.RevocationListStale: {"No newer revocation list came within policy's maxAge: changes are refused.", "syncgate revoke --reissue, and see why the list did not arrive."},
	gate.ImageNotPinned:      {"An image has no digest, in the manifest or in the lock, or is no image reference at all.", "syncgate pin, commit .syncgate; a placeholder such as auto needs images.allowUnpinned in policy."},
	gate.ImageTagMoved:       {"The registry has another digest for a tag than the lock.", "Find out who pushed; syncgate pin --update takes the new image, which then needs a receipt."},
	gate.ImageUnresolvable:   {"A registry did not say which digest a tag has: not found, not authorized, rate limited or down.", "Mend what the message names; a rate limit or an outage passes by itself."},
	gate.DuplicateObject:     {"The same object stands twice in the render: which one counts would depend on who reads it.", "Keep one."},
	gate.EmptyRender:         {"The render has no objects; with pruning on, syncing it would delete the application.", "Check the path and the renderer."},
	gate.ObjectMalformed:     {"A gated field holds a value of the wrong type, stands twice, or must not be there.", "Change the manifest at the path that the message gives."},
	gate.ProtectedTarget:     {"The application renders into a namespace that policy protects.", "Use a namespace of its own; or have the application listed under protected.writers."},
	gate.ForceNotAllowed:     {"A gated object asks to be deleted and created instead of updated; the deletion would come before the refusal.", "Remove the Force or Replace option."},
	gate.UnknownImage:        {"A kind that syncgate does not know holds something that looks like an image, and policy refuses that.", "Name the path under kinds in policy."},
	gate.FieldDefaulted:      {"The API server filled in a gated field that the manifest leaves out.", "Set the field that the message names explicitly."},
	gate.FieldDropped:        {"The API server dropped a gated field (disabled feature, pruned by a schema).", "Remove the field, or enable the feature."},
	gate.RenderFailed:        {"The application's manifests could not be rendered.", "Mend what the renderer says."},
	gate.PolicyInvalid:       {"The operator's policy cannot be used, or has nothing for this application.", "Mend the policy at the line that the message gives, or ask for an environment that it allows."},
	gate.KeysUnavailable:     {"A key set or revocation list that policy names cannot be read or verified.", "Mend the file that the message names."},
	gate.ClusterUnavailable:  {"The cluster could not be asked what runs.", "Retry; check access."},
	gate.GateBusy:            {"Too many applications were rendered at once, and this one's turn did not come in time.", "It is tried again by itself; raise SYNCGATE_PARALLEL with the sidecar's memory if it happens often."},
}
