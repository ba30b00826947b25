// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checksums returns a line for each file, as sha256sum prints and checks them.
func checksums(files map[string][]byte) []byte {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&out, "%s  %s\n", sha(files[name]), name)
	}
	return []byte(out.String())
}

// sign returns a signature of data by a private key in PEM, in the form that cosign verify-blob
// reads, and openssl once it is decoded. The same key and data give the same signature (RFC 6979).
func sign(data, key []byte) ([]byte, error) {
	block, _ := pem.Decode(key)
	if block == nil {
		return nil, errors.New("the key is no PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the key: %w", err)
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("the key is not one of ECDSA")
	}
	sum := sha256.Sum256(data)
	signature, err := private.Sign(nil, sum[:], crypto.SHA256)
	if err != nil {
		return nil, err
	}
	return []byte(base64.StdEncoding.EncodeToString(signature) + "\n"), nil
}
