// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// padder is a fake API server that returns two pages, each with one large ScheduledRestart.
type padder struct {
	client.Reader
	limits []int64
}

const padding = 1 << 20

func (p *padder) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	p.limits = append(p.limits, o.Limit)
	page := list.(*tidekeeperv1.ScheduledRestartList)
	page.ResourceVersion = fmt.Sprint("7", o.Continue)
	if page.Items = []tidekeeperv1.ScheduledRestart{padded("a" + o.Continue)}; o.Continue == "" {
		page.Continue = "2"
	}
	return nil
}

// padded returns a ScheduledRestart with large values in the fields that no command shows.
func padded(name string) tidekeeperv1.ScheduledRestart {
	much := strings.Repeat("x", padding)
	r := tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "evil", UID: "1", ResourceVersion: "5", Generation: 3,
		Labels: map[string]string{"example.com/much": much}, Finalizers: []string{much},
		Annotations:     map[string]string{"example.com/much": much, tidekeeperv1.RestartNowAnnotation: much, tidekeeperv1.AppliedAnnotation: "{}"},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1(much)}},
		OwnerReferences: []metav1.OwnerReference{{Name: much}, {Kind: "Deployment", Name: "web", UID: "2", Controller: new(true)}},
	}}
	r.Spec.Schedule = "* * * * *"
	r.Status.History = []tidekeeperv1.RestartRecord{{Outcome: tidekeeperv1.OutcomeSucceeded}}
	return r
}

// TestEachRestart checks that only the displayed fields of large objects are kept, and that few
// complete objects are in memory at the same time.
func TestEachRestart(t *testing.T) {
	p := &padder{}
	var read []*tidekeeperv1.ScheduledRestart
	version, err := EachRestart(t.Context(), p, func(r *tidekeeperv1.ScheduledRestart) { read = append(read, r) })
	if err != nil || version != "7" {
		t.Fatalf("read the version %q: %v", version, err)
	}
	if diff := cmp.Diff([]int64{restartPage, restartPage}, p.limits); diff != "" {
		t.Errorf("limits of the pages (-want +got):\n%s", diff)
	}
	var want []*tidekeeperv1.ScheduledRestart
	for _, name := range []string{"a", "a2"} {
		r := padded(name)
		r.ManagedFields, r.Labels, r.Finalizers = nil, nil, nil
		r.OwnerReferences = r.OwnerReferences[1:]
		r.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: strings.Repeat("x", longestAnnotation), tidekeeperv1.AppliedAnnotation: "{}"}
		want = append(want, &r)
	}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("what is kept (-want +got):\n%.2000s", diff)
	}
}
