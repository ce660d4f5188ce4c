package keys

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/syncgate/syncgate/plugin/receipt"
)

const (
	// maxSignature bounds what a signing command may print: the base64 of an
	// RSA signature of 8192 bits is 1,368 bytes.
	maxSignature = 16 << 10
	// maxComplaint bounds what of its standard error gets into an error.
	maxComplaint = 512
	// signTimeout leaves a person time to touch a hardware key.
	signTimeout = 2 * time.Minute
)

// ExecSigner signs with a command, for keys that are in a key service or a
// hardware module. The command gets the signing input on standard input and
// prints the signature: raw or base64, for ECDSA DER or r||s. It is run
// without a shell.
type ExecSigner struct {
	ctx       context.Context
	command   []string
	key       receipt.Key
	algorithm string
}

var _ receipt.Signer = (*ExecSigner)(nil)

// NewExecSigner returns the signer of a command (its path and arguments) for
// the public key that belongs to it: receipt.Sign checks what the command
// returns with that key. An empty algorithm stands for the one that fits the
// key, PS256 for RSA. The command is ended when ctx is done.
func NewExecSigner(ctx context.Context, command []string, key receipt.Key, algorithm string) (*ExecSigner, error) {
	if len(command) == 0 || command[0] == "" {
		return nil, errors.New("signing command: empty")
	}
	fits := receipt.AlgorithmsFor(key.Public)
	if algorithm == "" {
		algorithm = key.Algorithm
	}
	if algorithm == "" && len(fits) > 0 {
		algorithm = fits[0]
	}
	if !slices.Contains(fits, algorithm) {
		return nil, fmt.Errorf("signing command: algorithm %.80q does not fit key %q, which is for %q", algorithm, key.ID, fits)
	}
	return &ExecSigner{ctx: ctx, command: slices.Clone(command), key: key, algorithm: algorithm}, nil
}

// KeyID returns the key ID.
func (s *ExecSigner) KeyID() string { return s.key.ID }

// Algorithm returns the algorithm.
func (s *ExecSigner) Algorithm() string { return s.algorithm }

// Key returns the public key.
func (s *ExecSigner) Key() receipt.Key { return s.key }

// Sign runs the command. The error holds the beginning of what it wrote to
// standard error.
func (s *ExecSigner) Sign(signingInput []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(s.ctx, signTimeout)
	defer cancel()
	out, complaint := capped{limit: maxSignature}, capped{limit: maxComplaint}
	cmd := exec.CommandContext(ctx, s.command[0], s.command[1:]...)
	cmd.Stdin = bytes.NewReader(signingInput)
	cmd.Stdout, cmd.Stderr = &out, &complaint
	// A grandchild that keeps the pipes open must not keep us waiting.
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if err != nil {
		return nil, fmt.Errorf("running signing command %q: %w: %q", s.command[0], err, strings.TrimSpace(complaint.buffer.String()))
	}
	if out.over {
		return nil, fmt.Errorf("running signing command %q: more than %d bytes of output", s.command[0], maxSignature)
	}
	signature, ok := s.decode(out.buffer.Bytes())
	if !ok {
		return nil, fmt.Errorf("running signing command %q: %d bytes of output are not a signature for %s", s.command[0], out.buffer.Len(), s.algorithm)
	}
	return signature, nil
}

// decode tells the forms apart by their lengths, which do not overlap.
func (s *ExecSigner) decode(out []byte) ([]byte, bool) {
	candidates := [][]byte{out}
	text := strings.TrimRight(strings.Join(strings.Fields(string(out)), ""), "=")
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		b, err := encoding.Strict().DecodeString(text)
		if err == nil {
			candidates = append(candidates, b)
		}
	}
	size := receipt.SignatureSize(s.key.Public)
	for _, c := range candidates {
		if len(c) == size {
			return c, true
		}
	}
	for _, c := range candidates {
		raw, err := receipt.RawECDSA(c, s.algorithm)
		if err == nil {
			return raw, true
		}
	}
	return nil, false
}

// capped keeps the first bytes that are written to it and notes that there
// were more.
type capped struct {
	buffer bytes.Buffer
	limit  int
	over   bool
}

var _ io.Writer = (*capped)(nil)

func (c *capped) Write(p []byte) (int, error) {
	room := c.limit - c.buffer.Len()
	if len(p) > room {
		c.over = true
		c.buffer.Write(p[:room])
		return len(p), nil
	}
	return c.buffer.Write(p)
}
