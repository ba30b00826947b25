// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"testing"
)

// releaseVersion is the version of the release that make build-release creates.
const releaseVersion = "v0.1.0"

// released returns the path of a release file.
func released(t *testing.T, name string) string {
	t.Helper()
	file := filepath.Join(os.Getenv("RELEASE"), name)
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("RELEASE names no folder of a release: run make suite SUITE=node: %v", err)
	}
	return file
}

// loadRelease loads the release's image into the nodes under its name and digest, which the
// release's chart and install.yaml reference.
func (n *node) loadRelease(t *testing.T) {
	t.Helper()
	n.Sandbox(t, "nodes", "load-image", "tidekeeper:"+releaseVersion, released(t, "tidekeeper-"+releaseVersion+"-image.tar"))
}
