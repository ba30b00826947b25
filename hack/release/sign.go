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

// checksums returns the files' SHA-256 checksums in the format of sha256sum.
func checksums(files map[string][]byte) []byte {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&out, "%s  %s\n", sha(files[name]), name)
	}
	return []byte(out.String())
}

// signer creates signatures with a private key. They are deterministic (RFC 6979): the same key and
// data give the same signature.
type signer struct{ key *ecdsa.PrivateKey }

// newSigner reads a private key in PEM format.
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

// hint returns the identifier of the public key for a bundle, which is computed in the same way as
// in cosign.
func (s *signer) hint() (string, error) {
	der, err := x509.MarshalPKIXPublicKey(&s.key.PublicKey)
	sum := sha256.Sum256(der)
	return base64.StdEncoding.EncodeToString(sum[:]), err
}

// bundle is a Sigstore bundle with the signature of a file or an in-toto statement. JSON encodes
// its byte fields in base64.
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

// ofFile returns a bundle with the signature of a file.
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

// intoto is the media type of an in-toto statement in a DSSE envelope.
const intoto = "application/vnd.in-toto+json"

// ofStatement returns a bundle with a signed in-toto statement in a DSSE envelope.
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

// signFiles adds a signature bundle for each file. The provenance's bundle contains the statement
// itself. The checksums also get a bare signature, for openssl.
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
