// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// TestCertificateIsReadAgain checks that the files are read again after certificateAge but not
// earlier, that a mismatched pair is not served, and that a certificate is still served after the
// clock has been set back.
func TestCertificateIsReadAgain(t *testing.T) {
	cert, key := filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	write := func(content []byte, file string) {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	if _, err := readCertificate(cert, key, func() time.Time { return now }); err == nil {
		t.Error("files that are missing are no error")
	}

	makePair := func() ([]byte, []byte) {
		c, k, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c, k
	}
	first, firstKey := makePair()
	second, secondKey := makePair()
	write(first, cert)
	write(firstKey, key)
	c, err := readCertificate(cert, key, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	serves := func(when string, pem []byte) {
		t.Helper()
		pair, err := c.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		want, err := certutil.ParseCertsPEM(pem)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(pair.Certificate[0], want[0].Raw) {
			t.Errorf("%s: another certificate is served", when)
		}
	}
	serves("at first", first)
	write(second, cert)
	now = now.Add(certificateAge)
	serves("while the key is that of the first", first)
	write(secondKey, key)
	serves("before they are read again", first)
	now = now.Add(certificateAge)
	serves("renewed", second)

	write(first, cert)
	write(firstKey, key)
	now = now.Add(-time.Hour)
	serves("after the clock was set back", first)
}
