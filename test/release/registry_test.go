// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

// publicKey reads the release's public key, a file next to the release folder.
func publicKey(t *testing.T) *ecdsa.PublicKey {
	t.Helper()
	text, err := os.ReadFile(folder(t) + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return key.(*ecdsa.PublicKey)
}

func verifies(key *ecdsa.PublicKey, data, signature []byte) bool {
	digest := sha256.Sum256(data)
	return ecdsa.VerifyASN1(key, digest[:], signature)
}

// TestRegistryHasTheRelease pushes the release to a registry in the test process, like make
// push-release. The registry must contain the folder's artifacts, and signatures at the locations
// where cosign looks for them.
func TestRegistryHasTheRelease(t *testing.T) {
	t.Parallel()
	release := folder(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	image, charts := host+"/team/tidekeeper", host+"/team/charts"
	out, ok := run(t, t.TempDir(), os.Getenv("PACKER_BIN"), "push", "--folder="+release, "--version="+version, "--image="+image, "--charts="+charts, "--key="+release+".key")
	if !ok {
		t.Fatal(out)
	}
	pushed := strings.Fields(out)
	if want := image + "@" + imageIndex(t, in(t, "tidekeeper-"+version+"-image.tar")); len(pushed) != 2 || pushed[0] != want {
		t.Fatalf("pushed were %q, want %s first", pushed, want)
	}

	t.Run("image", func(t *testing.T) {
		got, err := remote.Image(reference(t, pushed[0]), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
		if err != nil {
			t.Fatal(err)
		}
		config, err := got.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Config.User != "65532:65532" || config.Config.Labels["org.opencontainers.image.version"] != version {
			t.Errorf("it runs as %q, with the labels %v", config.Config.User, config.Config.Labels)
		}
		if layers, err := got.Layers(); err != nil || len(layers) != 1 {
			t.Errorf("%d layers, %v; want one", len(layers), err)
		}
	})
	t.Run("chart", func(t *testing.T) {
		dir := t.TempDir()
		if out, ok := run(t, dir, os.Getenv("HELM_BIN"), "pull", "oci://"+charts+"/tidekeeper", "--version=0.1.0", "--plain-http"); !ok {
			t.Fatal(out)
		}
		got, err := os.ReadFile(filepath.Join(dir, "tidekeeper-0.1.0.tgz"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(in(t, "tidekeeper-0.1.0.tgz"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Error("helm pulls another chart than was released")
		}
	})
	t.Run("signatures", func(t *testing.T) {
		for _, of := range pushed {
			signed(t, of)
		}
	})
}

func reference(t *testing.T, of string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(of)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// signed checks the signature of the artifact with the given digest, both with cosign and according
// to cosign's signature specification.
func signed(t *testing.T, of string) {
	t.Helper()
	repository, digest, _ := strings.Cut(of, "@")
	image, err := remote.Image(reference(t, repository+":"+strings.Replace(digest, ":", "-", 1)+".sig"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d signatures, %v; want one", len(layers), err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	payload, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	var says struct {
		Critical struct {
			Image map[string]string `json:"image"`
		} `json:"critical"`
	}
	if err := json.Unmarshal(payload, &says); err != nil {
		t.Fatal(err)
	}
	if got := says.Critical.Image["docker-manifest-digest"]; got != digest {
		t.Errorf("%s has a signature of %s", of, got)
	}
	signature, err := base64.StdEncoding.DecodeString(manifest.Layers[0].Annotations["dev.cosignproject.cosign/signature"])
	if err != nil {
		t.Fatal(err)
	}
	key := publicKey(t)
	if !verifies(key, payload, signature) {
		t.Errorf("the signature of %s does not verify", of)
	}
	payload[len(payload)/2] ^= 1
	if verifies(key, payload, signature) {
		t.Errorf("the signature of %s verifies another byte", of)
	}
	if out, ok := cosign(t, "verify", of); !ok {
		t.Errorf("cosign verify %s: %s", of, out)
	}
}

// cosign runs cosign in the release folder, with the flags that docs/tasks/verify-a-release.md
// names.
func cosign(t *testing.T, command string, args ...string) (string, bool) {
	t.Helper()
	return run(t, folder(t), os.Getenv("COSIGN_BIN"), append([]string{command, "--key", folder(t) + ".pub", "--insecure-ignore-tlog"}, args...)...)
}

// TestCosign checks that cosign accepts the provenance of a release file, and rejects both the
// provenance and the file's bundle for a copy with one changed byte.
func TestCosign(t *testing.T) {
	t.Parallel()
	const file, provenance = "tidekeeper-0.1.0.tgz", "provenance.json"
	attested := []string{"--bundle", provenance + ".sigstore.json", "--type", "slsaprovenance1"}
	if out, ok := cosign(t, "verify-blob-attestation", append(attested, file)...); !ok {
		t.Errorf("cosign verify-blob-attestation %s: %s", file, out)
	}
	data, err := os.ReadFile(in(t, file))
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	tampered := filepath.Join(t.TempDir(), file)
	if err := os.WriteFile(tampered, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, ok := cosign(t, "verify-blob", "--bundle", file+".sigstore.json", tampered); ok {
		t.Errorf("verify-blob accepts another byte: %s", out)
	}
	if out, ok := cosign(t, "verify-blob-attestation", append(attested, tampered)...); ok {
		t.Errorf("verify-blob-attestation accepts another byte: %s", out)
	}
}

// TestEachFileIsSigned checks that each file except the signatures has a valid bundle, and that
// checksums.txt and the provenance list all files that they should cover.
func TestEachFileIsSigned(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(folder(t))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(in(t, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	key := publicKey(t)
	subjects := subjectsOf(t, key)
	count := 0
	for _, entry := range entries {
		file := entry.Name()
		if strings.HasSuffix(file, ".sigstore.json") || strings.HasSuffix(file, ".sig") {
			continue
		}
		count++
		data, err := os.ReadFile(in(t, file))
		if err != nil {
			t.Fatal(err)
		}
		if file != "checksums.txt" && !strings.Contains(string(sums), sum(data)+"  "+file+"\n") {
			t.Errorf("checksums.txt does not have %s", file)
		}
		if file == "provenance.json" {
			continue
		}
		if file != "checksums.txt" && subjects[file] != sum(data) {
			t.Errorf("the provenance says that %s is %q", file, subjects[file])
		}
		var bundle struct {
			MessageSignature struct {
				Signature []byte `json:"signature"`
			} `json:"messageSignature"`
		}
		unmarshal(t, file+".sigstore.json", &bundle)
		if !verifies(key, data, bundle.MessageSignature.Signature) {
			t.Errorf("the bundle of %s does not verify", file)
		}
		data[len(data)/2] ^= 1
		if verifies(key, data, bundle.MessageSignature.Signature) {
			t.Errorf("the bundle of %s verifies another byte", file)
		}
		if out, ok := cosign(t, "verify-blob", "--bundle", file+".sigstore.json", file); !ok {
			t.Errorf("cosign verify-blob %s: %s", file, out)
		}
	}
	if count < 10 {
		t.Errorf("only %d files", count)
	}
}

func unmarshal(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(in(t, file))
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// subjectsOf returns the names of the files that the signed provenance covers, with their digests.
func subjectsOf(t *testing.T, key *ecdsa.PublicKey) map[string]string {
	t.Helper()
	var bundle struct {
		Envelope struct {
			Payload     []byte `json:"payload"`
			PayloadType string `json:"payloadType"`
			Signatures  []struct {
				Sig []byte `json:"sig"`
			} `json:"signatures"`
		} `json:"dsseEnvelope"`
	}
	unmarshal(t, "provenance.json.sigstore.json", &bundle)
	e := bundle.Envelope
	plain, err := os.ReadFile(in(t, "provenance.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(plain, e.Payload) {
		t.Error("what is signed is not provenance.json")
	}
	encoded := "DSSEv1 " + strconv.Itoa(len(e.PayloadType)) + " " + e.PayloadType + " " + strconv.Itoa(len(e.Payload)) + " " + string(e.Payload)
	if len(e.Signatures) != 1 || !verifies(key, []byte(encoded), e.Signatures[0].Sig) {
		t.Error("the bundle of the provenance does not verify")
	}
	var statement struct {
		Subject []struct {
			Name   string            `json:"name"`
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
	}
	if err := json.Unmarshal(e.Payload, &statement); err != nil {
		t.Fatal(err)
	}
	subjects := map[string]string{}
	for _, s := range statement.Subject {
		subjects[s.Name] = s.Digest["sha256"]
	}
	return subjects
}
