// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"slices"
	"testing"

	"k8s.io/kubernetes/cmd/kube-controller-manager/app"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
)

// TestControllers checks that component.Controllers equals the compiled-in controller manager's
// list of controllers.
func TestControllers(t *testing.T) {
	t.Parallel()
	if want := app.KnownControllers(); !slices.Equal(component.Controllers, want) {
		t.Errorf("component.Controllers has\n%q\nand the controller manager\n%q", component.Controllers, want)
	}
}
