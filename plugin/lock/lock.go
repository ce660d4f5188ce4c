// Package lock reads and writes the directory .syncgate beside an application:
// the digests that its image tags are pinned to, and its receipts. It is
// committed to Git and made to merge, one file for each fact, so that two
// branches touch the same file only when they disagree:
//
//	.syncgate/images/ghcr.io+acme+web.lock                   the pins of one image name, a line for each tag
//	.syncgate/prod/apps.Deployment.shop.web.release.jwt      the receipt of one subject by one issuer
//	.syncgate/prod/apps.Deployment.shop.web.release.prev.jwt the one before it
//	.syncgate/render.lock                                    what was rendered with
//
// A file of pins holds lines such as
//
//   - {name: ghcr.io/acme/web, tag: "1.5", digest: sha256:...}
//
// and a file of a receipt a comment for people, then the receipt:
//
//	# web: image 1.4 -> 1.5, until 2027-03-01
//	eyJhbGciOi...
//
// File names are for people; what an entry is about is what its receipt says,
// and a file whose name says something else is refused. Nothing here is
// verified: an entry is as trustworthy as the pull request that brought it.
//
// No file ends in .yaml, .yml or .json: Flux's generator walks hidden folders
// too and fails on YAML that is not a Kubernetes object.
package lock

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Folder is the name of the directory beside the application.
const Folder = ".syncgate"

// Lock is the directory in memory. Changes reach the disk with Save. It is not
// safe for concurrent use.
type Lock struct {
	dir      string
	pins     map[string]map[string]string // image name -> tag -> digest
	receipts map[string]Entry             // by path
	saved    map[string]string            // path -> what the file holds, written canonically
}

// Open reads the lock of the application in dir. Without a .syncgate the lock
// is empty. It returns an error that names the file, and the line where there
// is one, for a file that is malformed, too large, unknown or named for
// something else than it holds, and for a symbolic link that leads out of
// .syncgate. Files whose names start with a dot are left alone.
func Open(dir string) (*Lock, error) {
	l := &Lock{dir: dir, pins: map[string]map[string]string{}, receipts: map[string]Entry{}, saved: map[string]string{}}
	files, err := readFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", Folder, err)
	}
	for _, f := range files {
		err = l.load(f)
		if err != nil {
			return nil, fmt.Errorf("reading %s/%s: %w", Folder, f.path, err)
		}
	}
	l.saved = l.files()
	return l, nil
}

// files renders the whole lock, by path.
func (l *Lock) files() map[string]string {
	out := map[string]string{}
	for name, tags := range l.pins {
		if len(tags) > 0 {
			out[pinsPath(name)] = formatPins(name, tags)
		}
	}
	for path, e := range l.receipts {
		out[path] = formatReceipt(e)
	}
	return out
}

// Save writes what changed since Open or the last Save, and touches no other
// file. Each file appears as a whole or not at all: it is written beside its
// place and synced, and when all of them are, they are renamed. When Save fails
// while writing, nothing has changed.
func (l *Lock) Save() error {
	want := l.files()
	var write, remove []string
	for path, text := range want {
		if old, ok := l.saved[path]; !ok || old != text {
			write = append(write, path)
		}
	}
	for path := range l.saved {
		if _, ok := want[path]; !ok {
			remove = append(remove, path)
		}
	}
	if len(write)+len(remove) == 0 {
		return nil
	}
	// Previous receipts first: in between the newer one is there twice, not
	// the older one lost.
	slices.SortFunc(write, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	slices.Sort(remove)
	err := writeFolder(l.dir, write, want, remove)
	if err != nil {
		return fmt.Errorf("writing %s: %w", Folder, err)
	}
	l.saved = maps.Clone(want)
	return nil
}

func rank(path string) int {
	if isPrevious(path) {
		return 0
	}
	return 1
}
