package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Lifetime of a certificate. It is renewed when a third of it is left.
const Lifetime = 90 * 24 * time.Hour

// skew is how far the clock of an API server may be behind ours.
const skew = time.Hour

// maxBundle bounds what is read as certificates, in bytes.
const maxBundle = 1 << 20

// pair is a serving certificate with its key and the certificate of its
// authority, all PEM.
type pair struct {
	certificate, key, authority []byte
}

// issue makes a pair for host names and IP addresses, good from now on.
func issue(hosts []string, now time.Time) (pair, error) {
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("making a key: %w", err)
	}
	authority := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "syncgate-webhook-ca"},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(Lifetime),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	if authority.SerialNumber, err = serial(); err != nil {
		return pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return pair{}, fmt.Errorf("making the authority: %w", err)
	}
	if authority, err = x509.ParseCertificate(der); err != nil { // with its key ID
		return pair{}, fmt.Errorf("making the authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("making a key: %w", err)
	}
	leaf := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "syncgate-webhook"},
		NotBefore: now.Add(-skew), NotAfter: now.Add(Lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, h)
		}
	}
	if leaf.SerialNumber, err = serial(); err != nil {
		return pair{}, err
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), authorityKey)
	if err != nil {
		return pair{}, fmt.Errorf("making the certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair{}, fmt.Errorf("writing the key: %w", err)
	}
	return pair{
		certificate: encode("CERTIFICATE", leafDER), key: encode("PRIVATE KEY", keyDER), authority: encode("CERTIFICATE", der),
	}, nil
}

func serial() (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	return n, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// expiry returns until when a pair is good for all hosts; the error says why it
// is not at all. The authority may be a bundle.
func (p pair) expiry(hosts []string, now time.Time) (time.Time, error) {
	served, err := tls.X509KeyPair(p.certificate, p.key)
	if err != nil {
		return time.Time{}, errors.New("the certificate and the key are no pair")
	}
	pool := x509.NewCertPool()
	for _, c := range certificates(p.authority) {
		pool.AddCert(c)
	}
	var end time.Time
	for _, h := range hosts {
		chains, err := served.Leaf.Verify(x509.VerifyOptions{DNSName: h, Roots: pool, CurrentTime: now})
		if err != nil {
			return time.Time{}, err
		}
		for _, c := range chains[0] {
			if end.IsZero() || c.NotAfter.Before(end) {
				end = c.NotAfter
			}
		}
	}
	return end, nil
}

// bundle joins the certificates of several PEM texts, each once, in order,
// without those that have expired or are none.
func bundle(now time.Time, texts ...[]byte) []byte {
	var out []byte
	seen := map[string]bool{}
	for _, text := range texts {
		for _, c := range certificates(text) {
			if seen[string(c.Raw)] || now.After(c.NotAfter) {
				continue
			}
			seen[string(c.Raw)] = true
			out = append(out, encode("CERTIFICATE", c.Raw)...)
		}
	}
	return out
}

func certificates(text []byte) []*x509.Certificate {
	var out []*x509.Certificate
	if len(text) > maxBundle {
		return nil
	}
	for {
		var block *pem.Block
		if block, text = pem.Decode(bytes.TrimSpace(text)); block == nil {
			return out
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			out = append(out, c)
		}
	}
}
