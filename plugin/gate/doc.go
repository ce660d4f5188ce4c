// Package gate decides whether an object may run: Evaluate is the only code
// that allows or denies, for every front end.
//
// Everything is judged per category. A category that applies to the object's
// kind and that policy requires passes when it is unchanged (the object that
// is replaced, if known, has the same leaves in it), or when enough valid
// receipts of issuers that may sign it cover it. Otherwise the object is
// refused, and each Finding says for which category, which receipt came
// closest, and what was wrong with it.
//
// The package is pure: time, keys, revocations and policy are arguments. The
// zero Decision denies.
package gate
