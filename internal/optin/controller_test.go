// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/kube/event"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// TestAnswers checks which events and retries follow each response of the API server to a write.
func TestAnswers(t *testing.T) {
	restarts := schema.GroupResource{Group: tidekeeperv1.GroupName, Resource: "scheduledrestarts"}
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: tidekeeperv1.GroupName, Kind: "ScheduledRestart"}, "web",
		field.ErrorList{field.Invalid(field.NewPath("spec", "schedule"), "x", "must be better")})
	terminating := apierrors.NewForbidden(restarts, "web", errors.New("going"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for _, tt := range []struct {
		name        string
		annotations map[string]string
		existing    *RestartMaker
		answer      error

		event string
		retry bool
		again time.Duration
	}{
		{name: "created", annotations: in("true"), event: "Normal ScheduledRestartCreated created ScheduledRestart web: suspended"},
		{
			name: "updated", annotations: in("true"), existing: Made(`{"schedule":"@daily"}`),
			event: "Normal ScheduledRestartUpdated updated ScheduledRestart web: schedule no longer set by an annotation",
		},
		{
			name: "deleted", existing: Made(`{"suspend":true}`),
			event: "Normal ScheduledRestartDeleted deleted ScheduledRestart web: the workload no longer has the annotation tidekeeper.dev/scheduled-restart",
		},
		{
			name: "overtaken", annotations: in("true"), answer: apierrors.NewConflict(restarts, "web", errors.New("modified")),
			retry: true,
		},
		{name: "overtaken by a deletion", existing: Made(`{"suspend":true}`), answer: apierrors.NewNotFound(restarts, "web")},
		{name: "in a namespace that is being deleted", annotations: in("true"), answer: terminating},
		{
			name: "refused by the schema", annotations: in("true"), answer: invalid, again: time.Second,
			event: `Warning InvalidOptIn nothing is changed: spec.schedule: Invalid value: "x": must be better`,
		},
		{
			name: "refused deletion", existing: Made(`{"suspend":true}`), answer: invalid, retry: true,
			event: `Warning ScheduledRestartFailed delete ScheduledRestart web: ` + invalid.Error(),
		},
		{
			name: "forbidden", annotations: in("true"), answer: apierrors.NewForbidden(restarts, "web", errors.New("quota")), retry: true,
			event: `Warning ScheduledRestartFailed create ScheduledRestart web: scheduledrestarts.tidekeeper.dev "web" is forbidden: quota`,
		},
		{
			name: "failed with a long message", existing: Made(`{"suspend":true}`), answer: errors.New(strings.Repeat("é", 1000)), retry: true,
			event: "Warning ScheduledRestartFailed delete ScheduledRestart web: " + strings.Repeat("é", 496) + "…",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			writes := 0
			r, recorder := newReconciler(t, deployment(tt.annotations), tt.existing.Obj(), interceptor.Funcs{
				Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
					writes++
					return tt.answer
				},
				Delete: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
					writes++
					options := (&client.DeleteOptions{}).ApplyOptions(opts)
					if p := options.Preconditions; p == nil || *p.UID != o.GetUID() || *p.ResourceVersion != o.GetResourceVersion() {
						t.Errorf("deleted with the preconditions %v", p)
					}
					return tt.answer
				},
			})
			result, err := r.Reconcile(t.Context(), requestFor(workload.Deployment))
			if (err != nil) != tt.retry {
				t.Errorf("error: got %v, want one: %t", err, tt.retry)
			}
			if diff := cmp.Diff(ctrl.Result{RequeueAfter: tt.again}, result); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.event, recorded(recorder)); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
			if writes != 1 {
				t.Errorf("%d writes, want 1", writes)
			}
		})
	}
}

// TestRefusedIsTriedAgain checks that a rejected write is retried with increasing delays, and that
// an accepted write resets the delay.
func TestRefusedIsTriedAgain(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "ScheduledRestart"}, "web", nil)
	var answer error
	r, _ := newReconciler(t, deployment(in("true")), nil, interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return answer
		},
	})
	for i, step := range []struct {
		answer error
		again  time.Duration
	}{
		{invalid, time.Second}, {invalid, 2 * time.Second}, {invalid, 4 * time.Second}, {nil, 0}, {invalid, time.Second},
	} {
		answer = step.answer
		result, err := r.Reconcile(t.Context(), requestFor(workload.Deployment))
		if err != nil || result.RequeueAfter != step.again {
			t.Errorf("try %d: again after %s, error %v; want after %s", i, result.RequeueAfter, err, step.again)
		}
	}
}

// TestOnlyForAWorkloadThatStays checks that no ScheduledRestart is created or adopted for a
// workload that is being deleted, even if the cache does not show the deletion yet.
func TestOnlyForAWorkloadThatStays(t *testing.T) {
	going := deployment(in("true"))
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{metav1.FinalizerOrphanDependents}
	another := deployment(in("true"))
	another.UID = "web-2"
	for _, tt := range []struct {
		name string
		live *appsv1.Deployment
		want int
	}{
		{name: "stays", live: deployment(in("true")), want: 1},
		{name: "is going", live: going},
		{name: "is gone"},
		{name: "is another", live: another},
	} {
		for what, existing := range map[string]*tidekeeperv1.ScheduledRestart{
			"creates": nil, "adopts": Made(`{"suspend":true}`).NoOwner().Obj(),
		} {
			t.Run(what+" if it "+tt.name, func(t *testing.T) {
				writes := 0
				r, _ := newReconciler(t, deployment(in("true")), existing, interceptor.Funcs{
					Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
						writes++
						return nil
					},
				})
				live := fake.NewClientBuilder()
				if tt.live != nil {
					live.WithObjects(tt.live)
				}
				r.live = live.Build()
				var log strings.Builder
				ctx := logr.NewContext(t.Context(), funcr.New(func(_, line string) { log.WriteString(line) }, funcr.Options{Verbosity: 1}))
				if _, err := r.Reconcile(ctx, requestFor(workload.Deployment)); err != nil {
					t.Fatal(err)
				}
				if gone := strings.Contains(log.String(), "There is no such workload"); gone != (tt.want == 0) {
					t.Errorf("the log says %q", log.String())
				}
				if writes != tt.want {
					t.Errorf("%d writes, want %d", writes, tt.want)
				}
			})
		}
	}
}

// TestKinds checks that a request only looks up a workload of its own kind, and that nothing
// happens if the workload does not exist.
func TestKinds(t *testing.T) {
	for _, kind := range workload.Kinds {
		r, recorder := newReconciler(t, deployment(in("yes")), nil, interceptor.Funcs{})
		if _, err := r.Reconcile(t.Context(), requestFor(kind)); err != nil {
			t.Fatal(err)
		}
		if got := recorded(recorder); (got != "") != (kind == workload.Deployment) {
			t.Errorf("reconciled a %s with the name of a Deployment: events %q", kind.Kind, got)
		}
	}
}

func requestFor(kind *workload.Kind) request {
	return request{kind: kind, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}
}

func deployment(annotations map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: *web(annotations)}
}

// newReconciler returns a reconciler for a cluster that contains the given workload and, unless it
// is nil, the given ScheduledRestart.
func newReconciler(t *testing.T, workload client.Object, existing *tidekeeperv1.ScheduledRestart, funcs interceptor.Funcs) (*reconciler, *events.FakeRecorder) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), tidekeeperv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(workload).WithInterceptorFuncs(funcs)
	if existing != nil {
		b.WithObjects(existing)
	}
	recorder := events.NewFakeRecorder(10)
	c := b.Build()
	return &reconciler{client: c, live: c, recorder: event.NewRecorder(recorder, scheme, clock.RealClock{}), refused: newLimiter()}, recorder
}

// recorded returns the recorded events, one per line.
func recorded(recorder *events.FakeRecorder) string {
	var all []string
	for len(recorder.Events) > 0 {
		all = append(all, <-recorder.Events)
	}
	return strings.Join(all, "\n")
}
