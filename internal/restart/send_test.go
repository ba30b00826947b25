// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// TestRecheckOfMany checks the recheck with a shared list when many ticks are due: a tick is sent
// even if a new restart was requested after the list was read, but not if the spec was edited
// before the list was read.
func TestRecheckOfMany(t *testing.T) {
	due := time.Date(2026, 6, 10, 3, 0, 0, 0, time.UTC)
	var objects []client.Object
	claimed := newClaims(100, newMemories())
	for i := range manyClaims {
		restart := &tidekeeperv1.ScheduledRestart{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("web-", i), Namespace: "shop", UID: types.UID(fmt.Sprint(i)), Generation: 1},
			Status:     tidekeeperv1.ScheduledRestartStatus{Active: &tidekeeperv1.ActiveRestart{ScheduledTime: metav1.Time{Time: due}, StartedTime: metav1.Time{Time: due}}},
		}
		objects = append(objects, restart)
		claimed.note(client.ObjectKeyFromObject(restart), restart, &tidekeeperv1.ScheduledRestartStatus{})
	}
	scheme := runtime.NewScheme()
	if err := tidekeeperv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	s := &sender{apiReader: server, claims: claimed, clock: clocktesting.NewFakePassiveClock(due)}
	check := func(i int, change func(*tidekeeperv1.ScheduledRestart)) error {
		restart := objects[i].DeepCopyObject().(*tidekeeperv1.ScheduledRestart)
		change(restart)
		return s.recheck(t.Context(), client.ObjectKeyFromObject(restart), restart)
	}
	same := func(*tidekeeperv1.ScheduledRestart) {}
	if err := check(0, same); err != nil {
		t.Errorf("unchanged: %v", err)
	}

	requested := objects[1].DeepCopyObject().(*tidekeeperv1.ScheduledRestart)
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(requested), requested); err != nil {
		t.Fatal(err)
	}
	request := func(restart *tidekeeperv1.ScheduledRestart) {
		metav1.SetMetaDataAnnotation(&restart.ObjectMeta, tidekeeperv1.RestartNowAnnotation, "2026-06-10T03:00:05Z")
	}
	request(requested)
	if err := server.Update(t.Context(), requested); err != nil {
		t.Fatal(err)
	}
	if err := check(1, request); err != nil {
		t.Errorf("requested since, as the cache shows: %v", err)
	}
	// The cache keeps only a prefix of an annotation.
	requested.Annotations[tidekeeperv1.RestartNowAnnotation] = strings.Repeat("x", 8192)
	if err := server.Update(t.Context(), requested); err != nil {
		t.Fatal(err)
	}
	if err := check(1, func(restart *tidekeeperv1.ScheduledRestart) {
		metav1.SetMetaDataAnnotation(&restart.ObjectMeta, tidekeeperv1.RestartNowAnnotation, strings.Repeat("x", 4096))
	}); err != nil {
		t.Errorf("requested by a text that the cache cuts: %v", err)
	}
	if err := check(2, func(restart *tidekeeperv1.ScheduledRestart) { restart.Generation = 0 }); !apierrors.IsConflict(err) {
		t.Errorf("edited before, as the cache does not show: %v, want a conflict", err)
	}
}
