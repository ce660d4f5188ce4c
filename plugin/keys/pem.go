package keys

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/syncgate/syncgate/plugin/receipt"
)

func isPEM(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(data), []byte("-----BEGIN "))
}

// blocks decodes every PEM block. Package pem skips what it cannot read, so
// the blocks that begin are counted: a damaged one must not just be missing.
func blocks(data []byte) ([]*pem.Block, error) {
	var list []*pem.Block
	rest := data
	for {
		block, after := pem.Decode(rest)
		if block == nil {
			break
		}
		list = append(list, block)
		rest = after
	}
	if len(bytes.TrimSpace(rest)) > 0 || len(list) != bytes.Count(data, []byte("-----BEGIN ")) {
		return nil, errors.New("parsing PEM: damaged or trailing data")
	}
	return list, nil
}

func loadPublicPEM(data []byte) ([]receipt.Key, error) {
	found, err := blocks(data)
	if err != nil {
		return nil, err
	}
	var list []receipt.Key
	for i, block := range found {
		if strings.Contains(block.Type, "PRIVATE KEY") {
			return nil, fmt.Errorf("parsing PEM block %d: private key in a public key file: whoever has read it can sign, so retire the key", i+1)
		}
		if block.Type != "PUBLIC KEY" {
			return nil, fmt.Errorf(`parsing PEM block %d: got %.40q, want "PUBLIC KEY"`, i+1, block.Type)
		}
		public, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("parsing PEM block %d: %w", i+1, err)
		}
		key, err := receipt.NewKey("", public)
		if err != nil {
			return nil, fmt.Errorf("parsing PEM block %d: %w", i+1, err)
		}
		list = append(list, key)
	}
	err = checkUnique(list)
	if err != nil {
		return nil, fmt.Errorf("parsing PEM: %w", err)
	}
	return list, nil
}

// privatePEM returns the one private key of the file.
func privatePEM(data []byte) (any, error) {
	found, err := blocks(data)
	if err != nil {
		return nil, err
	}
	// openssl ecparam writes the name of the curve in a block of its own.
	if len(found) == 2 && found[0].Type == "EC PARAMETERS" {
		found = found[1:]
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("parsing private key: got %d PEM blocks, want 1", len(found))
	}
	block := found[0]
	if block.Headers["DEK-Info"] != "" || block.Type == "ENCRYPTED PRIVATE KEY" {
		return nil, errors.New("parsing private key: it is encrypted; decrypt it first (openssl pkcs8)")
	}
	var private any
	switch block.Type {
	case "PRIVATE KEY":
		private, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		private, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		private, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("parsing private key: got a PEM block %.40q, want PRIVATE KEY, EC PRIVATE KEY or RSA PRIVATE KEY", block.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("parsing private key: %w", err)
	}
	return private, nil
}
