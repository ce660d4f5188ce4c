package app

import (
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/internal/manifest"
)

// ReadStream parses manifests that somebody else rendered, for
// Settings.Stream. It is never nil, so that an empty one is refused as such.
// The error is a *Refusal that names file, document and line.
func ReadStream(data []byte, file string) ([]manifest.Object, error) {
	objects, err := manifest.Parse(data, file)
	if err != nil {
		return nil, Refuse(gate.RenderFailed, "%v", err)
	}
	if objects == nil {
		objects = []manifest.Object{}
	}
	return objects, nil
}
