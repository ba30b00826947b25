// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// entries returns the contents of the files in a tar archive, keyed by name.
func entries(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if found[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func unpacked(t *testing.T, data []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func TestSBOMListsWhatIsLinked(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "example.dev/a"}, Deps: []*debug.Module{
		{Path: "example.dev/b", Version: "v1.0.0"},
		{Path: "example.dev/c", Version: "v1.0.0", Replace: &debug.Module{Path: "example.dev/fork", Version: "v2.0.0+incompatible"}},
		{Path: "example.dev/d", Version: "v0.0.0", Replace: &debug.Module{Path: "./d", Version: "(devel)"}},
	}}
	beside := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "example.dev/z"}, Deps: []*debug.Module{
		{Path: "example.dev/b", Version: "v1.0.0"}, {Path: "example.dev/e", Version: "v1.0.0"},
	}}
	data, err := sbomOf("a", "v0.1.0", info, beside)
	if err != nil {
		t.Fatal(err)
	}
	var list sbom
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range list.Components {
		got = append(got, c.Purl)
	}
	want := "pkg:golang/example.dev/b@v1.0.0 pkg:golang/example.dev/fork@v2.0.0%2Bincompatible pkg:golang/example.dev/d@v0.0.0 pkg:golang/example.dev/e@v1.0.0 pkg:golang/stdlib@1.26.8"
	if strings.Join(got, " ") != want {
		t.Errorf("the list has %v, want %s", got, want)
	}
}

func TestLicencesNeedAFile(t *testing.T) {
	dir := t.TempDir()
	linked := []module{{path: "example.dev/b", source: "example.dev/b", version: "v1.0.0"}}
	folder := map[string]string{"example.dev/b": dir}
	if _, err := licences(linked, folder); err == nil {
		t.Error("a module without a licence is packed")
	}
	linked = append(linked, module{path: "example.dev/d", beside: true})
	for name, text := range map[string]string{"LICENSE.txt": "may be used", "NOTICE": "was written", "licenser.go": "package b"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := licences(linked, folder)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(text); !strings.Contains(got, "may be used") || !strings.Contains(got, "was written") || strings.Contains(got, "package b") {
		t.Errorf("the texts are\n%s", got)
	}
}

// TestImageIsALayout checks the image's OCI layout by following its digests in the same way as a
// registry or a container runtime.
func TestImageIsALayout(t *testing.T) {
	order := []platform{{"linux", "amd64"}, {"linux", "arm64"}}
	binaries := map[platform][]byte{order[0]: []byte("of amd64"), order[1]: []byte("of arm64")}
	data, digest, err := imageOf(binaries, order, "v0.1.0", noon)
	if err != nil {
		t.Fatal(err)
	}
	files := entries(t, data)
	blob := func(digest string, into any) []byte {
		t.Helper()
		content := files["blobs/sha256/"+strings.TrimPrefix(digest, "sha256:")]
		if got := "sha256:" + sha(content); got != digest {
			t.Fatalf("blob %s has the digest %s", digest, got)
		}
		if into != nil {
			if err := json.Unmarshal(content, into); err != nil {
				t.Fatal(err)
			}
		}
		return content
	}
	var top, index manifest
	if err := json.Unmarshal(files["index.json"], &top); err != nil {
		t.Fatal(err)
	}
	if len(top.Manifests) != 1 || top.Manifests[0].Digest != digest {
		t.Fatalf("index.json names %v, want %s", top.Manifests, digest)
	}
	blob(digest, &index)
	if len(index.Manifests) != len(order) {
		t.Fatalf("%d platforms, want %d", len(index.Manifests), len(order))
	}
	for i, one := range index.Manifests {
		var m manifest
		var config imageConfig
		blob(one.Digest, &m)
		blob(m.Config.Digest, &config)
		if *one.Platform != order[i] || config.platform != order[i] {
			t.Errorf("platform %d is %v and %v, want %v", i, *one.Platform, config.platform, order[i])
		}
		if config.Config.User != "65532:65532" {
			t.Errorf("user is %q", config.Config.User)
		}
		if len(m.Layers) != 1 {
			t.Fatalf("%d layers, want one", len(m.Layers))
		}
		layer := unpacked(t, blob(m.Layers[0].Digest, nil))
		if got := "sha256:" + sha(layer); got != config.RootFS.DiffIDs[0] {
			t.Errorf("the layer is %s, and its image says %s", got, config.RootFS.DiffIDs[0])
		}
		if in := entries(t, layer); len(in) != 1 || string(in["tidekeeper"]) != string(binaries[order[i]]) {
			t.Errorf("the layer of %v has %v", order[i], in)
		}
	}
}

func TestChartNamesTheImage(t *testing.T) {
	source := fstest.MapFS{
		"Chart.yaml":  {Data: []byte("name: tidekeeper\nversion: 0.0.0\nappVersion: v0.0.0\n")},
		"values.yaml": {Data: []byte("image:\n  repository: tidekeeper\n  digest: \"\"\n")},
		".helmignore": {Data: []byte("*.orig\n")},
	}
	data, err := chartOf(source, "v0.1.0", "example.dev/tidekeeper", "sha256:abc", []platform{{"linux", "arm64"}}, noon)
	if err != nil {
		t.Fatal(err)
	}
	files := entries(t, unpacked(t, data))
	if got := string(files["tidekeeper/Chart.yaml"]); !strings.Contains(got, "\nversion: 0.1.0\nappVersion: v0.1.0\n") || !strings.Contains(got, "image: example.dev/tidekeeper@sha256:abc\n") {
		t.Errorf("Chart.yaml is\n%s", got)
	}
	if got, want := string(files["tidekeeper/values.yaml"]), "image:\n  repository: example.dev/tidekeeper\n  digest: \"sha256:abc\"\n"; got != want {
		t.Errorf("values.yaml is\n%swant\n%s", got, want)
	}
	source["values.yaml"].Data = []byte("image: {}\n")
	if _, err := chartOf(source, "v0.1.0", "tidekeeper", "sha256:abc", []platform{{"linux", "arm64"}}, noon); err == nil {
		t.Error("a chart without a digest is packed")
	}
}

func TestNotes(t *testing.T) {
	const upgrading = "\n\n### Upgrading\n\n- nothing\n"
	const changelog = "# Changelog\n\n## [Unreleased]\n\n- new" + upgrading + "\n## [0.1.0] - 2026-01-02\n\n- first" + upgrading + "\n## [0.0.1]\n\n- older" + upgrading
	for version, want := range map[string]string{"v0.1.0": "- first", "v0.0.1": "- older", "v0.2.0": "- new"} {
		if got, err := notesOf(changelog, version); err != nil || got != want+upgrading {
			t.Errorf("notes of %s are %q, %v; want %q", version, got, err, want)
		}
	}
	for _, wrong := range []string{"# Changelog\n", "# Changelog\n\n## [0.1.0]\n\n- not a word about upgrades\n"} {
		if notes, err := notesOf(wrong, "v0.1.0"); err == nil {
			t.Errorf("%q has the notes %q", wrong, notes)
		}
	}
}

func TestSignatureVerifies(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	signed := func() map[string][]byte {
		files := map[string][]byte{"a": []byte("1"), "provenance.json": []byte("{}")}
		files["checksums.txt"] = checksums(files)
		if err := signFiles(files, key); err != nil {
			t.Fatal(err)
		}
		return files
	}
	files := signed()
	verifies := func(data, signature []byte) bool {
		sum := sha256.Sum256(data)
		return ecdsa.VerifyASN1(&private.PublicKey, sum[:], signature)
	}
	bare, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(files["checksums.txt.sig"])))
	if err != nil || !verifies(files["checksums.txt"], bare) {
		t.Errorf("the bare signature does not verify: %v", err)
	}
	var of, statement bundle
	if err := errors.Join(json.Unmarshal(files["a.sigstore.json"], &of), json.Unmarshal(files["provenance.json.sigstore.json"], &statement)); err != nil {
		t.Fatal(err)
	}
	if !verifies([]byte("1"), of.MessageSignature.Signature) || verifies([]byte("2"), of.MessageSignature.Signature) {
		t.Error("the bundle of a file does not verify, or verifies another one")
	}
	// The signature must be over the DSSE encoding of the payload.
	if !verifies([]byte("DSSEv1 28 application/vnd.in-toto+json 2 {}"), statement.Envelope.Signatures[0].Sig) {
		t.Error("the bundle of the provenance does not verify")
	}
	if again := signed(); !reflect.DeepEqual(again, files) {
		t.Error("signed again, the files differ")
	}
}

func TestOnlyAReleaseIsReplaced(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	r := &release{files: map[string][]byte{"a": []byte("1")}}
	for range 2 {
		if err := r.write(out, ""); err != nil {
			t.Fatal(err)
		}
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.write(foreign, ""); err == nil {
		t.Error("a folder with other files is replaced")
	}
}
