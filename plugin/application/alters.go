package application

import "maps"

// Alters reports whether a Kustomization's spec has a field by which Flux makes
// something else of what an artifact holds, or deletes or leaves out some of it:
// in artifact mode nothing is judged after that. One that is not known here counts
// as such. The tree is decoded JSON, as the API server has it.
func Alters(tree map[string]any) bool {
	spec, _ := tree["spec"].(map[string]any)
	var bad problems
	f := &fields{"spec", maps.Clone(spec), &bad}
	f.skip("sourceRef", "path") // a path leads to nothing: all is at the root
	f.skip(appliedOnly...)
	f.ignored()
	f.done()
	return bad.err() != nil
}
