// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

func TestGet(t *testing.T) {
	for _, k := range Kinds {
		got, err := Get(k.Ref("web"))
		if err != nil || got != k {
			t.Errorf("%s: got %v, error %v", k.Kind, got, err)
		}
		if got, err := Of(k.New()); err != nil || got != k {
			t.Errorf("an object of %s is of %v, error %v", k.Kind, got, err)
		}
	}
	if got, err := Get(tidekeeperv1.TargetRef{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "web"}); err != nil || got != DaemonSet {
		t.Errorf("with the default apiVersion: got %v, error %v", got, err)
	}
}

// TestUnknownKinds checks that an unknown kind causes an error and is not mistaken for a known
// kind.
func TestUnknownKinds(t *testing.T) {
	for _, ref := range []tidekeeperv1.TargetRef{
		{}, {Kind: "Pod"}, {Kind: "deployment"}, {Kind: "Rollout"},
		{APIVersion: "apps/v1beta1", Kind: "Deployment"}, {APIVersion: "apps.kruise.io/v1beta1", Kind: "StatefulSet"},
	} {
		if got, err := Get(ref); err == nil {
			t.Errorf("%+v is a %s, want an error", ref, got.Kind)
		}
	}
	if got, err := Of(&corev1.Pod{}); err == nil {
		t.Errorf("a Pod is a %s, want an error", got.Kind)
	}
	for _, k := range Kinds {
		if _, err := k.State(&corev1.Pod{}); err == nil {
			t.Errorf("a Pod has a state as a %s, want an error", k.Kind)
		}
		if err := k.Trim(&corev1.Pod{}); err == nil {
			t.Errorf("a Pod is trimmed as a %s, want an error", k.Kind)
		}
	}
}

// TestKindsAreDeclared checks that the schema of targetRef and the admission policy list every
// kind. All other code iterates over Kinds.
func TestKindsAreDeclared(t *testing.T) {
	for _, k := range Kinds {
		for file, want := range map[string]string{
			"config/crd/bases/tidekeeper.dev_scheduledrestarts.yaml": fmt.Sprintf("'%s/%s'", k.APIVersion(), k.Kind),
			"config/policy/restart_rights.yaml":                      fmt.Sprintf("'%s/%s': '%s'", k.APIVersion(), k.Kind, k.Resource),
		} {
			text, err := os.ReadFile("../../" + file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), want) {
				t.Errorf("%s does not have %s", file, want)
			}
		}
	}
}

// TestRestart checks that each kind's restart patch sets a single field of the spec to the time of
// the restart.
func TestRestart(t *testing.T) {
	tick := time.Date(2026, 6, 10, 5, 0, 0, 0, time.FixedZone("", 2*60*60))
	for _, k := range Kinds {
		path := []string{}
		value := any(k.Restart(tick))
		for {
			fields, ok := value.(map[string]any)
			if !ok {
				break
			}
			if len(fields) != 1 {
				t.Fatalf("%s: it patches %v, want one field", k.Kind, fields)
			}
			for field, inner := range fields {
				path, value = append(path, field), inner
			}
		}
		if diff := cmp.Diff(any("2026-06-10T03:00:00Z"), value); diff != "" || path[0] != "spec" {
			t.Errorf("%s: %s (-want +got):\n%s", k.Kind, strings.Join(path, "."), diff)
		}
	}
}
