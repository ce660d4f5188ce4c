package lock

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/syncgate/syncgate/plugin/receipt"
)

const (
	// maxFileName bounds what stands before the ending of a file name: with a
	// hash and ".prev.jwt" it stays under the 255 bytes of common file systems
	// and leaves room for the folders in front of it.
	maxFileName = 180

	imagesFolder = "images"
	renderFile   = "render.lock"
	pinsEnding   = ".lock"
	ending       = ".jwt"
	prevEnding   = ".prev.jwt"
)

// A name is kept readable where that is safe; else what is in the way becomes
// '_' and the name ends in '=' and a hash, which no unchanged name can. What
// is safe is narrow: on some systems "Web" and "web" are one file, "nul.lock"
// is a device, and a dot between two parts would make "a.b" and "c" the same
// as "a" and "b.c".
type namer struct {
	b       strings.Builder
	changed bool
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	digits = "0123456789"
	label  = lower + digits + "-"
)

// add appends the part of a name with every character outside of safe
// replaced.
func (n *namer) add(part, safe string) {
	for _, r := range part {
		if strings.ContainsRune(safe, r) {
			n.b.WriteRune(r)
			continue
		}
		n.b.WriteByte('_')
		n.changed = true
	}
}

// name returns the file name for what identity says in full.
func (n *namer) name(identity string, reserved ...string) string {
	s := n.b.String()
	base, _, _ := strings.Cut(s, ".")
	reserved = append(reserved, "con", "prn", "aux", "nul")
	for _, r := range reserved {
		if s == r || base == r {
			n.changed = true
		}
	}
	if len(base) == 4 && (strings.HasPrefix(base, "com") || strings.HasPrefix(base, "lpt")) {
		n.changed = true
	}
	if s == "" || strings.HasPrefix(s, ".") || strings.HasPrefix(s, "-") || strings.HasSuffix(s, ".") {
		s = "_" + strings.Trim(s, ".-")
		n.changed = true
	}
	if len(s) > maxFileName {
		s = s[:maxFileName]
		n.changed = true
	}
	if !n.changed {
		return s
	}
	sum := sha256.Sum256([]byte(identity))
	return s + "=" + hex.EncodeToString(sum[:4])
}

// pinsPath returns the file of an image's pins: '/' is written '+' and ':'
// '~', which no image name holds.
func pinsPath(image string) string {
	var n namer
	for i, part := range strings.Split(image, "/") {
		for j, word := range strings.Split(part, ":") {
			if i > 0 && j == 0 {
				n.b.WriteByte('+')
			}
			if j > 0 {
				n.b.WriteByte('~')
			}
			n.add(word, label+"._")
		}
	}
	return imagesFolder + "/" + n.name(image) + pinsEnding
}

func environmentFolder(environment string) string {
	var n namer
	n.add(environment, label+".")
	return n.name(environment, imagesFolder, renderFile)
}

// receiptPath returns the file of an entry. Only the group keeps its dots, so
// that the last four parts can be told apart. '+' after the name says that it
// is a prefix.
func receiptPath(e Entry) string {
	group, namespace := e.Subject.Group, e.Subject.Namespace
	if group == "" {
		group = "core"
	}
	if namespace == "" {
		namespace = "-"
	}
	var n namer
	n.add(group, label+".")
	n.b.WriteByte('.')
	n.add(e.Subject.Kind, lower+strings.ToUpper(lower)+digits)
	n.b.WriteByte('.')
	n.add(namespace, label)
	n.b.WriteByte('.')
	n.add(e.Subject.Name, label)
	if e.Subject.Generated {
		n.b.WriteByte('+')
	}
	n.b.WriteByte('.')
	n.add(e.Issuer, label)
	path := environmentFolder(e.Environment) + "/" + n.name(identity(e.Subject)+"\n"+e.Issuer)
	if e.Previous {
		return path + prevEnding
	}
	return path + ending
}

// identity tells every two subjects apart. No sub claim holds a line break.
func identity(s receipt.Subject) string {
	if s.Generated {
		return s.String() + "\ngenerated"
	}
	return s.String()
}
