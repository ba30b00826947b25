// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
)

// TestUnknownKinds checks that unknown kinds are found in kubectl's output for manifests with
// Certificates while cert-manager is not installed.
func TestUnknownKinds(t *testing.T) {
	const unknown = `exit status 1: namespace/shop serverside-applied
resource mapping not found for name: "serving-cert" namespace: "shop" from "config/default": no matches for kind "Certificate" in version "cert-manager.io/v1"
ensure CRDs are installed first
resource mapping not found for name: "selfsigned-issuer" namespace: "shop" from "config/default": no matches for kind "Issuer" in version "cert-manager.io/v1"
ensure CRDs are installed first
`
	for _, tc := range []struct {
		name, complaint string
		kinds           []string
		only            bool
	}{
		{"only unknown kinds", unknown, []string{"cert-manager.io/v1 Certificate", "cert-manager.io/v1 Issuer"}, true},
		{"and something else", unknown + "Error from server (Forbidden): no\n", []string{"cert-manager.io/v1 Certificate", "cert-manager.io/v1 Issuer"}, false},
		{"something else", "exit status 1: error: the path \"a\" does not exist\n", nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if kinds, only := unknownKinds(tc.complaint); !slices.Equal(kinds, tc.kinds) || only != tc.only {
				t.Errorf("got %q, %t", kinds, only)
			}
		})
	}
}

// TestInstallAdvice checks that the error for a missing namespace explains how to install a part of
// a kustomization.
func TestInstallAdvice(t *testing.T) {
	unknown := errors.New(`exit status 1: Error from server (NotFound): error when creating "config/rbac": namespaces "system" not found`)
	if err := withAdvice(unknown); !errors.Is(err, unknown) || !strings.Contains(err.Error(), "there is no namespace system: install what has it before this, or, in place of a part such as config/rbac, the whole, such as config/default") {
		t.Errorf("said is %v", err)
	}
	if other := errors.New("exit status 1: no"); withAdvice(other).Error() != other.Error() {
		t.Error("advised is something that does not help")
	}
}

// TestInstallPaths checks that the error for a missing path names the directory that the path is
// relative to.
func TestInstallPaths(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "workload.yaml")
	if err := os.WriteFile(file, []byte("install: [config/crd]\nsteps: [{run: ls}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := workload.Read(file)
	if want := "install[0]: there is no config/crd: names are relative to the directory of the file that has them, so this one is looked for at " + filepath.Join(dir, "config/crd"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("said is %v, want %q", err, want)
	}
}
