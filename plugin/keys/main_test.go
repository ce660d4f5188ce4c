package keys

import (
	"bytes"
	"encoding/asn1"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"os"
	"testing"
)

// TestMain lets the test binary be the signing command, in the form that
// SYNCGATE_TEST_SIGNER says.
func TestMain(m *testing.M) {
	form := os.Getenv("SYNCGATE_TEST_SIGNER")
	if form == "" {
		os.Exit(m.Run())
	}
	err := signCommand(form)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func signCommand(form string) error {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	switch form {
	case "fail":
		return fmt.Errorf("no token in slot 0")
	case "nothing":
		return nil
	case "wrong":
		_, err = os.Stdout.Write(make([]byte, 64))
		return err
	case "flood":
		_, err = os.Stdout.Write(bytes.Repeat([]byte("A"), maxSignature+1))
		return err
	}
	s, err := ReadSigner(os.Args[1], "")
	if err != nil {
		return err
	}
	signature, err := s.Sign(input)
	if err != nil {
		return err
	}
	half := len(signature) / 2
	der, err := asn1.Marshal(struct{ R, S *big.Int }{new(big.Int).SetBytes(signature[:half]), new(big.Int).SetBytes(signature[half:])})
	if err != nil {
		return err
	}
	out := map[string]string{
		"raw":        string(signature),
		"base64":     base64.StdEncoding.EncodeToString(signature) + "\n",
		"base64url":  base64.RawURLEncoding.EncodeToString(signature),
		"der":        string(der),
		"der-base64": base64.StdEncoding.EncodeToString(der)[:60] + "\n" + base64.StdEncoding.EncodeToString(der)[60:] + "\n",
	}[form]
	_, err = io.WriteString(os.Stdout, out)
	return err
}
