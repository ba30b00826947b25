// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ociv1 "github.com/opencontainers/image-spec/specs-go/v1"
	"sigs.k8s.io/yaml"
)

func TestHierarchies(t *testing.T) {
	const mountinfo = `27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs none rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup none rw,cpu,cpuacct
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup none rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 none rw
damaged
`
	got := hierarchies(mountinfo)
	want := []hierarchy{
		{"/sys/fs/cgroup/cpu,cpuacct", []string{"rw", "cpu", "cpuacct"}},
		{"/sys/fs/cgroup/systemd", []string{"rw", "name=systemd"}},
		{"/sys/fs/cgroup/unified", nil},
	}
	equal := slices.EqualFunc(got, want, func(a, b hierarchy) bool {
		return a.mount == b.mount && slices.Equal(a.controllers, b.controllers)
	})
	if !equal {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestMissingCapabilities(t *testing.T) {
	for status, want := range map[string][]string{
		"CapPrm:\t0\nCapEff:\t000001ffffffffff\n": nil,
		"CapEff:\t000001fffeffffff\n":             nil, // without CAP_SYS_RESOURCE
		"CapEff:\t00000000a80425fb\n":             {"CAP_SYS_ADMIN", "CAP_NET_ADMIN"},
		"CapEff:\t0000000000000000\n":             {"CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_MKNOD", "CAP_SYS_CHROOT"},
	} {
		if got := missingCapabilities(status); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", status, got, want)
		}
	}
	if mayRaise("CapEff:\t000001fffeffffff\n") || !mayRaise("CapEff:\t000001ffffffffff\n") {
		t.Error("mayRaise does not go by CAP_SYS_RESOURCE")
	}
}

func TestNetworks(t *testing.T) {
	for number := 1; number <= Most; number++ {
		n := NetworkOf(number)
		for _, host := range []string{Name(number), n.Node.String(), n.Pods.Addr().Next().String()} {
			if got := NumberOf(host); got != number {
				t.Errorf("%s is on node %d, want %d", host, got, number)
			}
		}
		for other := 1; other < number; other++ {
			if NetworkOf(other).Has(n.Node.String()) || NetworkOf(other).Pods.Overlaps(n.Pods) {
				t.Fatalf("nodes %d and %d share addresses", other, number)
			}
		}
	}
	// Addresses and names of simulated nodes, pods and Services, and invalid addresses and names,
	// belong to no real node.
	for _, host := range []string{"172.16.0.1", "172.16.30.1", "10.128.0.1", "10.96.0.1", "127.0.0.1", "node-1", "real-0", "real-01", "real-1x", "real--1", "", "::1", "172.30.1.2"} {
		if got := NumberOf(host); got != 0 {
			t.Errorf("%q is on node %d, want none", host, got)
		}
	}
}

func TestConfigurations(t *testing.T) {
	s := Spec{Name: "real-1", Number: 1, Dir: "/tmp/a b/nodes/real-1", Programs: "/tmp/a b/bin", Cgroup: "/sandbox/real-1"}
	var kubelet map[string]any
	if err := yaml.UnmarshalStrict([]byte(s.kubeletConfig()), &kubelet); err != nil {
		t.Errorf("the kubelet's: %v\n%s", err, s.kubeletConfig())
	}
	if kubelet["cgroupRoot"] != s.Cgroup {
		t.Errorf("cgroupRoot is %v, want %s", kubelet["cgroupRoot"], s.Cgroup)
	}
	if !json.Valid([]byte(s.cniConfig())) {
		t.Errorf("the network's is no JSON:\n%s", s.cniConfig())
	}
	containerd := s.containerdConfig("overlayfs", s.program("runc"), true)
	for _, want := range []string{"restrict_oom_score_adj = true", `snapshotter = "overlayfs"`, `BinaryName = "/tmp/a b/bin/runc"`, "runtimes.runc-2]", `Root = "/run/runtimes/runc-2"`} {
		if !strings.Contains(containerd, want) {
			t.Errorf("containerd's has no %s:\n%s", want, containerd)
		}
	}
}

func TestFullName(t *testing.T) {
	for name, want := range map[string]string{
		"operator":               "docker.io/library/operator:latest",
		"operator:dev":           "docker.io/library/operator:dev",
		"registry.example/a/b:1": "registry.example/a/b:1",
		PauseImage:               PauseImage,
	} {
		if got, err := FullName(name); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
	if _, err := FullName("No Name"); err == nil {
		t.Error("a name with a space was accepted")
	}
}

// program builds a small statically linked program, and returns its path.
func program(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pause")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", file, "../tools/pause")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

// TestImage checks that two image archives of the same program are identical, and that each
// descriptor in an archive refers to a blob in the archive.
func TestImage(t *testing.T) {
	pause := program(t)
	var first, second bytes.Buffer
	for _, w := range []io.Writer{&first, &second} {
		if err := WriteImage(w, PauseImage, pause); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two images of one program differ")
	}
	files := untar(t, first.Bytes())
	blob := func(d ociv1.Descriptor) []byte {
		data, ok := files["blobs/sha256/"+d.Digest.Encoded()]
		if !ok || int64(len(data)) != d.Size || d.Digest.Algorithm().FromBytes(data) != d.Digest {
			t.Fatalf("%s is not in the archive as described", d.Digest)
		}
		return data
	}
	var index ociv1.Index
	var manifest ociv1.Manifest
	var config ociv1.Image
	for _, step := range []struct {
		data func() []byte
		into any
	}{
		{func() []byte { return files["index.json"] }, &index},
		{func() []byte { return blob(index.Manifests[0]) }, &manifest},
		{func() []byte { return blob(manifest.Config) }, &config},
	} {
		if err := json.Unmarshal(step.data(), step.into); err != nil {
			t.Fatal(err)
		}
	}
	if config.Config.User != ImageUser || !slices.Equal(config.Config.Entrypoint, []string{"/pause"}) {
		t.Errorf("user %q, entry point %v", config.Config.User, config.Config.Entrypoint)
	}
	layer := blob(manifest.Layers[0])
	want, err := os.ReadFile(pause)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(untar(t, layer)["pause"], want) {
		t.Error("the program in the image is another")
	}
	if config.RootFS.DiffIDs[0] != manifest.Layers[0].Digest {
		t.Error("the layer is not the one of the configuration")
	}
}

// TestLayout checks that WriteLayout sets an image's name, adds the same name by digest, and
// changes nothing else.
func TestLayout(t *testing.T) {
	source := filepath.Join(t.TempDir(), "image.tar")
	write := func(manifests string) {
		var layout bytes.Buffer
		if err := writeTar(&layout, []entry{
			{name: "blobs/sha256/one", mode: 0o644, data: []byte("blob")}, {name: ociv1.ImageIndexFile, mode: 0o644, data: []byte(`{"schemaVersion":2,"manifests":[` + manifests + `]}`)},
		}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(source, layout.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sum := "sha256:" + strings.Repeat("ab", 32)
	manifest := `{"mediaType":"application/vnd.oci.image.index.v1+json","digest":"` + sum + `","size":7,"annotations":{"org.opencontainers.image.ref.name":"v1"}}`
	write(manifest)
	file, err := StoreImage(t.TempDir(), "app:v1", source)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	files := untar(t, data)
	var index ociv1.Index
	if err := json.Unmarshal(files[ociv1.ImageIndexFile], &index); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range index.Manifests {
		if m.Digest.String() != sum || m.Size != 7 {
			t.Errorf("%s has %s of %d bytes", m.Annotations["io.containerd.image.name"], m.Digest, m.Size)
		}
		names = append(names, m.Annotations["io.containerd.image.name"])
	}
	if want := []string{"docker.io/library/app:v1", "docker.io/library/app@" + sum}; !slices.Equal(names, want) || string(files["blobs/sha256/one"]) != "blob" {
		t.Errorf("the names are %q, want %q, and the blob is %q", names, want, files["blobs/sha256/one"])
	}

	for _, manifests := range []string{"", manifest + "," + manifest, "{"} {
		write(manifests)
		if _, err := StoreImage(t.TempDir(), "app:v1", source); err == nil {
			t.Errorf("an archive with the images [%s] is accepted", manifests)
		}
	}
}

func untar(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	archive := tar.NewReader(bytes.NewReader(data))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStoreImage checks that StoreImage leaves no file in the directory if the source cannot be an
// image.
func TestStoreImage(t *testing.T) {
	dir, text := t.TempDir(), filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	noLayout := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(noLayout, make([]byte, 1024), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{"a:1", noLayout}, {"a:1", text}, {"a:1", text + ".missing"}, {"A B", text}, {"a:1", "/bin/sh"}} {
		if _, err := StoreImage(dir, c[0], c[1]); err == nil {
			t.Errorf("StoreImage(%q, %q) succeeded", c[0], c[1])
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
