// Package policy decides what an operator's GatePolicy file says: which issuers
// may sign what, where, and how strictly each application is judged
// (docs/examples has policies to start from).
//
// The file is decoded strictly: an unknown, duplicate, wrong-case or empty key
// is an error with its line, and so is whatever contradicts itself. A policy
// that does not load allows nothing. A minimal one is an environment and an
// issuer:
//
//	apiVersion: syncgate.io/v1alpha1
//	kind: GatePolicy
//	environment: prod
//	issuers:
//	- name: release
//	  keys: {file: release.jwks.json}
//
// What relaxes a check may depend only on what is in Argo CD's cache key:
// application name, destination namespace, path, plugin.env. A render that
// Argo CD takes from its cache for another project was judged for that one.
package policy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
)

// APIVersion and FileKind stand at the top of a policy file.
const (
	APIVersion = "syncgate.io/v1alpha1"
	FileKind   = "GatePolicy"
)

// maxFile bounds the policy file, key sets and revocation lists, in bytes: a
// ConfigMap cannot hold more.
const maxFile = 1 << 20

// Policy is a policy file that has been read, validated, and completed with
// defaults. It never changes and may be used by several goroutines. The zero
// value knows no environment and no issuer: For refuses.
type Policy struct {
	base         Effective // but for what depends on the environment
	environments []environment
	required     map[projection.Category]int64
	anywhere     map[projection.Category]int64
	apps         []app
	admission    Admission
	custom       []customKind
	warnings     []string
	keyIDs       []string
	hash         string
	rulesHash    string // without the revocation list

	// To name the line that forbids what an application asks for.
	file       string
	lines      map[string]int
	categories []categoryDoc

	// To read again the files that it names.
	read        func(name string) ([]byte, error)
	issuers     []issuerDoc
	revocations *revocationsDoc
}

// Load reads a policy file and the key sets and revocation list that it names;
// relative names are beside the file. Every file is a regular
// one of at most 1 MiB. The error is [Errors].
func Load(path string) (*Policy, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, Errors{{Reason: gate.PolicyInvalid, File: path, Msg: cause(err)}}
	}
	return Parse(data, path, readFile)
}

// Parse is Load for data that has been read already; file is its name, and read
// returns the content of a key set or revocation list, whose name is relative
// to the directory of file unless it is absolute.
func Parse(data []byte, file string, read func(path string) ([]byte, error)) (*Policy, error) {
	v := &validator{
		decoder: decoder{file: file, lines: map[string]int{}},
		read: func(name string) ([]byte, error) {
			if !filepath.IsAbs(name) {
				name = filepath.Join(filepath.Dir(file), name)
			}
			return read(name)
		},
	}
	v.record("", data)
	v.document(data, &v.doc)
	if len(v.errs) > 0 {
		// Defaults would make up what could not be read, and contradictions
		// that are none.
		return nil, v.errs.sorted()
	}
	p := v.policy()
	if len(v.errs) > 0 {
		return nil, v.errs.sorted()
	}
	return p, nil
}

// Environments returns the names of the environments that the policy stands
// for, in the order of the file.
func (p *Policy) Environments() []string {
	var names []string
	for _, e := range p.environments {
		names = append(names, e.name)
	}
	return names
}

// Admission returns what concerns the webhook alone.
func (p *Policy) Admission() Admission { return p.admission }

// Projector projects with the policy's own kinds; nil if it has none.
func (p *Policy) Projector() *projection.Projector { return p.base.Projector }

// RequiresAnywhere reports whether a category must be signed somewhere: what
// decides about all applications at once, such as the conditions under which
// the API server asks the webhook, must not leave it out.
func (p *Policy) RequiresAnywhere(c projection.Category) bool {
	_, on := p.anywhere[c]
	return on
}

// Warnings returns what an operator should know about this policy though it is
// valid, one sentence each: what has been turned off.
func (p *Policy) Warnings() []string { return p.warnings }

func readFile(path string) ([]byte, error) {
	// Opening a pipe would wait for somebody to write.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("more than %d bytes", maxFile)
	}
	return data, nil
}
