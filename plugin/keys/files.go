package keys

import (
	"crypto"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/syncgate/syncgate/plugin/receipt"
)

// maxFile bounds a key file: a thousand RSA keys fit.
const maxFile = 1 << 20

// ReadJWKS is LoadJWKS on a regular file of at most 1 MiB. Errors name the file.
func ReadJWKS(path string) ([]receipt.Key, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	list, err := LoadJWKS(data)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return list, nil
}

// ReadSigner is LoadSigner on a regular file of at most 1 MiB. Errors name the file.
func ReadSigner(path, kid string) (*receipt.KeySigner, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	s, err := LoadSigner(data, kid)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return s, nil
}

// WritePrivate writes the private key as PEM to a new file that only its owner
// can read. It never overwrites: the key that is there may be the only copy.
func WritePrivate(path string, private crypto.Signer) error {
	data, err := MarshalPrivatePEM(private)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("writing private key: %w", err)
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Sync(), file.Close())
	if err != nil {
		// Half a key is none, and would be in the way of the next attempt.
		return errors.Join(fmt.Errorf("writing private key: %w", err), os.Remove(path))
	}
	return nil
}

func readFile(path string) ([]byte, error) {
	// Opening a pipe would wait for somebody to write.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("reading keys: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("reading %s: not a regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("reading %s: more than %d bytes", path, maxFile)
	}
	return data, nil
}
