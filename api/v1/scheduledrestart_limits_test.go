// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// The constants and the schema of the CRD name the same defaults and bounds.
func TestScheduledRestartLimits(t *testing.T) {
	text, err := os.ReadFile("../../config/crd/bases/tidekeeper.dev_scheduledrestarts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := map[string]any{}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	versions, _, err := unstructured.NestedSlice(crd, "spec", "versions")
	if err != nil || len(versions) != 1 {
		t.Fatalf("want one version of the CRD, got %d: %v", len(versions), err)
	}
	const maxLength, maximum = "maxLength", "maximum"
	type schema struct{ field, what string }
	for at, want := range map[schema]any{
		{"spec.schedule", "default"}:                  nil, // It depends on other fields.
		{"spec.schedule", maxLength}:                  float64(tidekeeperv1.MaxScheduleLength),
		{"spec.timeZone", "default"}:                  tidekeeperv1.DefaultTimeZone,
		{"spec.timeZone", maxLength}:                  float64(tidekeeperv1.MaxTimeZoneLength),
		{"spec.targetRef.apiVersion", "default"}:      tidekeeperv1.DefaultTargetAPIVersion,
		{"spec.startingDeadlineSeconds", maximum}:     float64(tidekeeperv1.MaxDeadlineSeconds),
		{"spec.progressDeadlineSeconds", maximum}:     float64(tidekeeperv1.MaxDeadlineSeconds),
		{"spec.spreadSeconds", maximum}:               float64(tidekeeperv1.MaxDeadlineSeconds),
		{"spec.maxPodAgeSeconds", "minimum"}:          float64(tidekeeperv1.MinPodAgeSeconds),
		{"spec.maxPodAgeSeconds", maximum}:            float64(tidekeeperv1.MaxPodAgeSeconds),
		{"spec.minIntervalSeconds", "default"}:        float64(tidekeeperv1.DefaultMinIntervalSeconds),
		{"spec.minIntervalSeconds", maximum}:          float64(tidekeeperv1.MaxMinIntervalSeconds),
		{"spec.failureLimit", maximum}:                float64(tidekeeperv1.MaxFailureLimit),
		{"spec.historyLimit", maximum}:                float64(tidekeeperv1.MaxHistoryLimit),
		{"status.history", "maxItems"}:                float64(tidekeeperv1.MaxHistoryLimit),
		{"status.history.items.message", maxLength}:   float64(tidekeeperv1.MaxRecordMessageLength),
		{"status.active.eviction.refused", maxLength}: float64(tidekeeperv1.MaxRefusalLength),
	} {
		path := []string{"schema", "openAPIV3Schema"}
		for name := range strings.SplitSeq(at.field, ".") {
			if name == "items" {
				path = append(path, name)
			} else {
				path = append(path, "properties", name)
			}
		}
		got, _, err := unstructured.NestedFieldNoCopy(versions[0].(map[string]any), append(path, at.what)...)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s of %s: %v (-constant +schema):\n%s", at.what, at.field, err, diff)
		}
	}
}
