// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
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

// signer signs by a private key. The same key and data give the same signature (RFC 6979).
type signer struct{ key *ecdsa.PrivateKey }

// newSigner reads a private key in PEM.
func newSigner(key []byte) (*signer, error) {
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
	return &signer{private}, nil
}

func (s *signer) sign(data []byte) ([]byte, error) {
	sum := sha256.Sum256(data)
	return s.key.Sign(nil, sum[:], crypto.SHA256)
}

// hint names the public key in a bundle, as cosign does.
func (s *signer) hint() (string, error) {
	der, err := x509.MarshalPKIXPublicKey(&s.key.PublicKey)
	sum := sha256.Sum256(der)
	return base64.StdEncoding.EncodeToString(sum[:]), err
}

// bundle is a signature in the form of Sigstore: of a file, or of a statement that it holds. Bytes are
// in base64.
type bundle struct {
	MediaType            string            `json:"mediaType"`
	VerificationMaterial verification      `json:"verificationMaterial"`
	MessageSignature     *messageSignature `json:"messageSignature,omitempty"`
	Envelope             *envelope         `json:"dsseEnvelope,omitempty"`
}

type verification struct {
	PublicKey struct {
		Hint string `json:"hint"`
	} `json:"publicKey"`
}

type messageSignature struct {
	MessageDigest struct {
		Algorithm string `json:"algorithm"`
		Digest    []byte `json:"digest"`
	} `json:"messageDigest"`
	Signature []byte `json:"signature"`
}

type envelope struct {
	Payload     []byte              `json:"payload"`
	PayloadType string              `json:"payloadType"`
	Signatures  []envelopeSignature `json:"signatures"`
}

type envelopeSignature struct {
	Sig []byte `json:"sig"`
}

func (s *signer) bundle() (*bundle, error) {
	b := &bundle{MediaType: "application/vnd.dev.sigstore.bundle.v0.3+json"}
	var err error
	b.VerificationMaterial.PublicKey.Hint, err = s.hint()
	return b, err
}

// ofFile returns the bundle of a file.
func (s *signer) ofFile(data []byte) ([]byte, error) {
	b, err := s.bundle()
	if err != nil {
		return nil, err
	}
	m := &messageSignature{}
	sum := sha256.Sum256(data)
	m.MessageDigest.Algorithm, m.MessageDigest.Digest = "SHA2_256", sum[:]
	if m.Signature, err = s.sign(data); err != nil {
		return nil, err
	}
	b.MessageSignature = m
	return json.Marshal(b)
}

// intoto is the type of a statement in an envelope.
const intoto = "application/vnd.in-toto+json"

// ofStatement returns the bundle that holds a statement of in-toto, in an envelope of DSSE.
func (s *signer) ofStatement(data []byte) ([]byte, error) {
	b, err := s.bundle()
	if err != nil {
		return nil, err
	}
	signature, err := s.sign(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(intoto), intoto, len(data), data))
	b.Envelope = &envelope{Payload: data, PayloadType: intoto, Signatures: []envelopeSignature{{Sig: signature}}}
	if err != nil {
		return nil, err
	}
	return json.Marshal(b)
}

// signFiles adds a bundle for each file; that of the provenance holds the statement. The checksums have
// a bare signature as well, for openssl.
func signFiles(files map[string][]byte, key []byte) error {
	s, err := newSigner(key)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		of := s.ofFile
		if name == "provenance.json" {
			of = s.ofStatement
		}
		if files[name+".sigstore.json"], err = of(files[name]); err != nil {
			return err
		}
	}
	signature, err := s.sign(files["checksums.txt"])
	files["checksums.txt.sig"] = []byte(base64.StdEncoding.EncodeToString(signature) + "\n")
	return err
}
