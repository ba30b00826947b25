// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// TestIssueCredentials checks that certificates are kept between runs, that missing certificates
// are issued, and that all of a CA's certificates are reissued after the CA was lost.
func TestIssueCredentials(t *testing.T) {
	dir := t.TempDir()
	c := credentials{pki: filepath.Join(dir, "pki"), kubeconfigs: filepath.Join(dir, "kubeconfigs")}
	read := func() map[string][]byte {
		t.Helper()
		if err := c.issue(); err != nil {
			t.Fatal(err)
		}
		all := map[string][]byte{}
		for _, name := range []string{clusterCA, etcdCA, frontProxyCA, apiServerCert, etcdCert, etcdClientCert, frontProxyCert, serviceAccountKey, kubeletClientCert} {
			data, err := os.ReadFile(c.keyFile(name))
			if err != nil {
				t.Fatal(err)
			}
			all[name] = data
		}
		return all
	}
	first := read()
	for _, tc := range []struct {
		lost    string
		changes []string
	}{
		{"", nil},
		{kubeletClientCert, []string{kubeletClientCert}},
		{etcdCA, []string{etcdCA, apiServerCert, etcdCert, etcdClientCert, frontProxyCert, serviceAccountKey, kubeletClientCert}},
	} {
		if tc.lost != "" {
			for _, file := range []string{c.keyFile(tc.lost), c.certFile(tc.lost)} {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
		}
		next := read()
		for name := range first {
			want := false
			for _, changed := range tc.changes {
				want = want || changed == name
			}
			if got := !bytes.Equal(first[name], next[name]); got != want {
				t.Errorf("after %q was lost, %s is a new one: %t, want %t", tc.lost, name, got, want)
			}
		}
		first = next
	}
}

// TestKubeconfig checks that a user's kubeconfig contains the API server's port, and that only
// kubeconfigs of sandboxes may be overwritten.
func TestKubeconfig(t *testing.T) {
	d := Dir(t.TempDir())
	if _, err := d.Access().AdminKubeconfig(); err == nil || !strings.Contains(err.Error(), "there is no sandbox in") {
		t.Errorf("a directory without a sandbox: %v", err)
	}
	if err := d.credentials().issue(); err != nil {
		t.Fatal(err)
	}
	if err := d.settings().save(settings{APIServerPort: 6443, EtcdPort: 2379}); err != nil {
		t.Fatal(err)
	}
	copied := d.path("copy")
	if err := d.Access().writeKubeconfigs(copied); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{d.Kubeconfig(), copied} {
		config, err := clientcmd.BuildConfigFromFlags("", file)
		if err != nil || config.Host != "https://127.0.0.1:6443" {
			t.Errorf("%s: %v, %v", file, config, err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
	for user := range users {
		if _, err := clientcmd.LoadFromFile(d.credentials().kubeconfigOf(user)); err != nil {
			t.Errorf("the kubeconfig of %s: %v", user, err)
		}
	}
	refusal := errors.New("refused")
	files := map[string]error{copied: nil, d.path("absent"): nil}
	for name, tc := range map[string]struct {
		text string
		want error
	}{
		"empty": {" \n", nil}, "text": {"notes", refusal},
		"other":  {"apiVersion: v1\nkind: Config\nclusters: [{name: prod, cluster: {server: https://prod}}]\n", refusal},
		"merged": {"apiVersion: v1\nkind: Config\nclusters: [{name: prod, cluster: {}}, {name: " + contextName + ", cluster: {}}]\n", refusal},
	} {
		if err := os.WriteFile(d.path(name), []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		files[d.path(name)] = tc.want
	}
	for file, want := range files {
		if err := MayOverwrite(file, contextName, refusal); !errors.Is(err, want) || err != nil && want == nil {
			t.Errorf("overwrite %s: %v, want %v", file, err, want)
		}
	}
	if err := MayOverwrite(d.path("no", "folder"), contextName, refusal); err == nil {
		t.Error("a kubeconfig in a directory that does not exist is not refused")
	}
}

// TestSettings checks that the ports of the last run are read from the settings file, and that the
// error for an invalid file suggests starting with --fresh.
func TestSettings(t *testing.T) {
	d := Dir(t.TempDir())
	want := settings{APIServerPort: 6443, EtcdPort: 2379}
	if err := d.settings().save(want); err != nil {
		t.Fatal(err)
	}
	if got, err := d.settings().load(); got != want || err != nil {
		t.Errorf("settings %+v (%v), want %+v", got, err, want)
	}
	if err := os.WriteFile(d.path("sandbox.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.settings().load(); err == nil || !strings.Contains(err.Error(), "sandbox up --fresh") {
		t.Errorf("damaged settings: %v", err)
	}
}

// TestSocketPaths checks that a socket's path does not exceed the kernel's limit and is the same
// for each call.
func TestSocketPaths(t *testing.T) {
	if got := (sockets{"/data"}).control(); got != "/data/control.sock" {
		t.Errorf("the control socket of /data is %s", got)
	}
	long := sockets{"/" + strings.Repeat("long/", 30)}
	seen := map[string]bool{}
	for _, path := range []string{long.control(), long.kubelets(), long.program(), long.node(1), long.node(2)} {
		if len(path) > longestSocket || seen[path] {
			t.Errorf("the socket %s has %d bytes; known: %t", path, len(path), seen[path])
		}
		seen[path] = true
	}
	if !seen[long.control()] {
		t.Error("the control socket has another path than before")
	}
}
