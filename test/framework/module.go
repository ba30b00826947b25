// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
)

// ModuleDir returns the folder of a module in the version that the go.mod in the folder `pins`
// requires. It downloads the module if it is not in the module cache.
func ModuleDir(t testing.TB, pins, module string) string {
	t.Helper()
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	download.Dir = filepath.Join(Root(), filepath.FromSlash(pins))
	out, err := download.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(out, &downloaded); err != nil {
		t.Fatal(err)
	}
	return downloaded.Dir
}
