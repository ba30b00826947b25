// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

var cluster framework.Cluster

func TestMain(m *testing.M) {
	os.Exit(framework.Main(m, &cluster, "--nodes=0", "--audit", "--pod-events=false"))
}

// slots is the number of restarts that may run at the same time; a namespace may use half of them.
// slotAge is the maximum time for which a restart keeps its slot.
const (
	slots   = 4
	slotAge = 3 * time.Second
)

// evil lists the hostile tenant's namespaces. Each may use half of the slots, so together they can
// use all slots.
var evil = []string{"evil-1", "evil-2"}

// stage is the state that the tricks share: the neighbour, the manager and the hostile tenant's
// client.
type stage struct {
	*neighbour
	manager *framework.Manager
	heap    *heap
	// mallory is the client of the hostile tenant, who has the role edit in each of the tenant's
	// namespaces.
	mallory client.Client
	// largest caches the largest objects that the API server accepts. swollen maps each metadata
	// field to the largest size that the API server has stored, in bytes.
	largest []largest
	swollen map[string]int
}

// TestTenants runs each trick of the hostile tenant, and checks the neighbour after it.
func TestTenants(t *testing.T) {
	// The hostile tenant's pods run on these nodes, which belong to no pool.
	cluster.AddNodes(t, "herd", 100)
	s := setStage(t)
	if !t.Run("the neighbour is served when all is quiet", func(t *testing.T) { s.served(t) }) {
		t.FailNow()
	}
	cost := s.startCost(t)
	s.readsLarge(t)
	s.heap.rest = s.heap.read(t)
	for _, trick := range s.tricks() {
		t.Run(trick.name, func(t *testing.T) {
			trick.play(t)
			s.served(t)
			s.heap.check(t)
			s.manager.AssertSound(t)
		})
	}
	t.Run("the neighbour's ticks came", s.ticks)
	t.Run("the neighbour's deadlines were kept", s.deadlines)
	t.Run("what the manager has cost", func(t *testing.T) { cost.check(t) })
}

// setStage starts a manager, and creates a neighbour and a hostile tenant.
func setStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{neighbour: newNeighbour(t), swollen: map[string]int{}}
	for _, namespace := range evil {
		cluster.Apply(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		grant(t, namespace, "mallory", "edit")
	}
	s.mallory = as(t, "mallory")
	eventuallyMay(t, s.mallory, evil[0])
	eventuallyMay(t, s.mallory, evil[1])
	s.heap = &heap{pprof: framework.FreeAddress(t)}
	s.manager = cluster.StartManager(t, append(cluster.ElectUntilReleased(t), "--pprof-bind-address="+s.heap.pprof,
		"--optional-watches=configmaps,secrets", "--restart-change-settle=1s",
		"--log-level=info", "--no-execute-interval=1s", "--no-execute-share=34",
		fmt.Sprintf("--max-concurrent-restarts=%d", slots), "--restart-namespace-share=50", fmt.Sprintf("--restart-slot-age=%s", slotAge))...)
	s.heap.manager = s.manager
	framework.EventuallyWithin(t, patience, "the manager knows the content that pods of the neighbour were started with", func() error {
		if cluster.Refresh(t, s.conf); s.conf.Status.ConfigHash == "" {
			return errNotYet
		}
		return nil
	})
	s.page = startPage(t)
	return s
}

// trick is an attempt of the hostile tenant to disturb its neighbour or the cluster.
type trick struct {
	name string
	play func(*testing.T)
}

// tricks returns all tricks in the order in which they run.
func (s *stage) tricks() []trick {
	return []trick{
		{"pods with invented resources", s.inventedResources},
		{"fresh names in a loop", s.freshNames},
		{"requests at times that cannot be", s.absurdTimes},
		{"each field as large as it may be", s.largestFields},
		{"an object that can no longer be written", s.paddedObject},
		{"restarts that are slow, and come each minute", s.hogs},
		{"restarts that never end", s.neverReady},
		{"requests of yesterday", s.backDated},
		{"objects that can no longer be written while they are restarted", s.paddedDuring},
		{"each field as large as it may be, during a restart", s.largestDuring},
		{"targets that can no longer be read while they are restarted", s.unreadableDuring},
		{"looks at the age of many pods", s.ageLooks},
		{"pods with tens of thousands of tolerations", s.manyTolerations},
		{"an order that is edited in a loop", s.editedHub},
		{"ConfigMaps that many use", s.sharedConfig},
		{"kinds that no one serves", s.unservedKinds},
		{"schedules that can never start", s.neverStart},
		{"pods that tolerate a taint for years", s.longTolerations},
		{"pods that are stuck in their end", s.stuckPods},
		{"the neighbour's opt-in deleted", s.deletedOptIn},
		{"the neighbour's opt-in disowned", s.disownedOptIn},
		{"huge annotations", s.hugeAnnotations},
		{"an event for each edit", s.manyEvents},
		{"a calendar of millions", s.calendar},
	}
}

// as returns a client that impersonates a user.
func as(t *testing.T, user string) client.Client {
	t.Helper()
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	config.UserAgent = user
	c, err := client.New(config, client.Options{Scheme: cluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// grant binds a ClusterRole to a user in a namespace.
func grant(t *testing.T, namespace, user, role string) {
	t.Helper()
	cluster.Apply(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user + "-" + role, Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
}

// eventuallyMay waits until a user may write ScheduledRestarts, because roles are aggregated some
// time after their creation.
func eventuallyMay(t *testing.T, user client.Client, namespace string) {
	t.Helper()
	framework.Eventually(t, "it may write ScheduledRestarts", func() error {
		return user.Create(t.Context(), restart(namespace, "may", nil), client.DryRunAll)
	})
}

// makes creates objects as the hostile tenant and deletes them when the test ends. It fails the
// test if they cannot be created.
func (s *stage) makes(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		s.creates(t, o)
		t.Cleanup(func() { s.removes(t, o) })
	}
}

// creates sends an object as the hostile tenant.
func (s *stage) creates(t *testing.T, o client.Object) {
	t.Helper()
	again := false
	answered(t, "create", o, func() error {
		err := s.mallory.Create(t.Context(), o)
		if again && apierrors.IsAlreadyExists(err) {
			return nil
		}
		again = true
		return err
	})
}

// answered sends a request about an object until it is answered, and fails the test if it is
// refused. A busy API server may not complete the request for a very large object in time, and may
// have carried it out.
func answered(t *testing.T, verb string, o client.Object, send func() error) {
	t.Helper()
	framework.Eventually(t, fmt.Sprintf("%s %T %s is answered", verb, o, o.GetName()), func() error {
		err := send()
		if err != nil && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) {
			t.Fatalf("%s %T %s: %v", verb, o, o.GetName(), err)
		}
		return err
	})
}

// keeps is [stage.makes] for objects that stay until the end of all tests.
func (s *stage) keeps(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		s.creates(t, o)
	}
}

// removes deletes an object after it has removed the object's finalizers.
func (s *stage) removes(t *testing.T, o client.Object) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if len(o.GetFinalizers()) > 0 {
		answered(t, "patch", o, func() error {
			return client.IgnoreNotFound(s.mallory.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
		})
	}
	answered(t, "delete", o, func() error { return client.IgnoreNotFound(s.mallory.Delete(ctx, o, client.GracePeriodSeconds(0))) })
}

// workload returns a Deployment. If `change` is not nil, it edits the pod template.
func workload(namespace, name string, replicas int32, change func(*corev1.PodTemplateSpec)) client.Object {
	d := framework.Deployment(name, replicas, *framework.App.DeepCopy())
	d.Namespace = namespace
	if change != nil {
		change(&d.Spec.Template)
	}
	return d
}

// restart returns a ScheduledRestart that restarts the Deployment with the same name every minute.
// If `change` is not nil, it edits the ScheduledRestart.
func restart(namespace, name string, change func(*tidekeeperv1.ScheduledRestart)) *tidekeeperv1.ScheduledRestart {
	r := framework.ScheduledRestart(name)
	r.Namespace = namespace
	r.Spec = tidekeeperv1.ScheduledRestartSpec{TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: name}, Schedule: "* * * * *"}
	if change != nil {
		change(r)
	}
	return r
}

var errNotYet = errors.New("not yet")
