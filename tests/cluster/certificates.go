package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

type certificates struct {
	caFile                string
	caPEM                 []byte
	certFile              string
	keyFile               string
	serviceAccountKeyFile string
}

// ensureCertificates returns the certificates kept in dir, and makes them at the first start:
// clients that pinned the authority still trust the server after a restart. The authority's key
// is thrown away, so that it can never sign anything else.
func ensureCertificates(dir string) (*certificates, error) {
	certs := &certificates{
		caFile:                filepath.Join(dir, "ca.crt"),
		certFile:              filepath.Join(dir, "server.crt"),
		keyFile:               filepath.Join(dir, "server.key"),
		serviceAccountKeyFile: filepath.Join(dir, "service-account.key"),
	}
	if _, err := os.Stat(certs.serviceAccountKeyFile); errors.Is(err, os.ErrNotExist) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		if err := writeKey(certs.serviceAccountKeyFile, key); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	if !certs.usable() {
		if err := certs.create(); err != nil {
			return nil, err
		}
	}
	caPEM, err := os.ReadFile(certs.caFile)
	if err != nil {
		return nil, err
	}
	certs.caPEM = caPEM
	return certs, nil
}

// usable tells whether the kept files belong together and are valid for a day more.
func (c *certificates) usable() bool {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return false
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return false
	}
	caPEM, err := os.ReadFile(c.caFile)
	if err != nil {
		return false
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(caPEM)
	_, err = leaf.Verify(x509.VerifyOptions{
		Roots: roots, DNSName: "127.0.0.1", CurrentTime: time.Now().Add(24 * time.Hour),
	})
	return err == nil
}

func (c *certificates) create() error {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	// An hour back, as clocks differ.
	from := time.Now().Add(-time.Hour)
	until := from.AddDate(2, 0, 0)
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(from.UnixNano()),
		Subject:               pkix.Name{CommonName: "listwatch test cluster authority"},
		NotBefore:             from,
		NotAfter:              until,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return err
	}
	// Parsed again for the key id that signing made up.
	ca, err = x509.ParseCertificate(caDER)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	server := &x509.Certificate{
		SerialNumber:          big.NewInt(from.UnixNano() + 1),
		Subject:               pkix.Name{CommonName: "kube-apiserver"},
		NotBefore:             from,
		NotAfter:              until,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:              []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
	}
	serverDER, err := x509.CreateCertificate(rand.Reader, server, ca, key.Public(), caKey)
	if err != nil {
		return err
	}
	if err := writeKey(c.keyFile, key); err != nil {
		return err
	}
	if err := writePEM(c.certFile, "CERTIFICATE", serverDER, 0o644); err != nil {
		return err
	}
	return writePEM(c.caFile, "CERTIFICATE", caDER, 0o644)
}

func writeKey(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(file, "EC PRIVATE KEY", der, 0o600)
}

func writePEM(file, blockType string, der []byte, mode os.FileMode) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: blockType, Bytes: der}), mode)
}
