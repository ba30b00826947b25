// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestObjectsOfEarlierVersionsAreAccepted checks that the API server still accepts the objects in
// the samples and documentation of earlier versions. hack/compat keeps them in test/compat.
func TestObjectsOfEarlierVersionsAreAccepted(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(framework.Root(), "test", "compat", "v*", "objects.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no version is kept: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			objects := strings.Count(string(text), "---\n") + 1
			out, err := cluster.Kubectl("", "apply", "--dry-run=server", "--validate=strict", "-f", file)
			if accepted := strings.Count(out, " created (server dry run)"); err != nil || accepted != objects {
				t.Errorf("of %d objects %d are accepted: %v\n%s", objects, accepted, err, out)
			}
		})
	}
}
