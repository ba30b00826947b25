// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"tidekeeper.dev/tidekeeper/internal/test/setting"
	sandbox "tidekeeper.dev/tidekeeper/sandbox/client"
)

// TestFitEqualsRealScheduler compares capacity's number of copies with the pods that kube-scheduler
// itself places in random worlds on a sandbox. SAMPLE sets the number of worlds, SEED the first.
func TestFitEqualsRealScheduler(t *testing.T) {
	s := startScheduler(t)
	r := newRecord("sample", setting.Number(t, "SAMPLE", 5, 1), setting.Number(t, "SEED", 1, 0))
	for i := range r.Worlds {
		w := newWorld(r.seed(i))
		w.forgetNodes()
		says := w.fit()
		// One more than fit: that one must stay without a node.
		got := int64(s.place(t, w, int(says.Copies)+1, len(says.AtMost) == 0))
		r.add(w, says, got)
		if got > says.Copies || got < says.Copies && len(says.AtMost) == 0 {
			t.Errorf("SEED=%d: %d copies fit (not evaluated: %q), and kube-scheduler places %d", r.seed(i), says.Copies, says.AtMost, got)
		}
		if (i+1)%25 == 0 {
			t.Logf("%d of %d", i+1, r.Worlds)
		}
	}
	r.report(t)
}

// scheduler is a sandbox in which only the scheduler acts: the controllers that would evict pods
// and delete pods without owners are stopped.
type scheduler struct {
	*sandbox.Sandbox
	kubernetes.Interface
}

// patience is the timeout for each wait.
const patience = 2 * time.Minute

func startScheduler(t *testing.T) *scheduler {
	t.Helper()
	s := &scheduler{Sandbox: sandbox.New(t, sandbox.Options{Nodes: sandbox.NoNodes, NoPodEvents: true})}
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 1000, 1000
	if s.Interface, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"shop", "other"} {
		if _, err := s.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.await(t, "pods can be created in "+name, func() error {
			_, err := s.CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
			return err
		})
	}
	for _, component := range []string{"kube-controller-manager", "kubelets", "kube-scheduler"} {
		s.component(t, "kill", component)
	}
	return s
}

func (s *scheduler) component(t *testing.T, action, name string) {
	t.Helper()
	if out, err := s.Run(t.Context(), "component", action, name); err != nil {
		t.Fatalf("%s %s: %v\n%s", action, name, err, out)
	}
}

func (s *scheduler) await(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := sandbox.Wait(t.Context(), patience, what, check); err != nil {
		t.Fatal(err)
	}
}

// place creates a world and copies of its pod, and returns how many of them the scheduler places. It
// returns when each copy is placed or was found unschedulable; if all but one are to be placed, it
// waits for that. The scheduler starts after all other objects exist, so that it knows them when it
// places the first copy.
func (s *scheduler) place(t *testing.T, w *world, copies int, allButOne bool) (placed int) {
	t.Helper()
	s.create(t, w)
	pods := s.CoreV1().Pods("shop")
	random := rand.New(rand.NewPCG(w.seed, 2))
	for i := range copies {
		one := w.copyOf(i)
		claims := w.ownClaims(one, i)
		uids := map[string]types.UID{one.Name: s.createPod(t, one)}
		for _, c := range claims {
			s.createClaim(t, c, w.volumeAtOnce(c, random), uids)
		}
	}
	s.component(t, "start", "kube-scheduler")
	s.await(t, fmt.Sprintf("SEED=%d: all copies have been tried", w.seed), func() error {
		if err := s.bindClaims(t.Context(), w); err != nil {
			return err
		}
		list, err := pods.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		placed = 0
		for _, p := range list.Items {
			if !strings.HasPrefix(p.Name, "copy-") {
				continue
			}
			if p.Spec.NodeName != "" {
				placed++
			} else if !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodScheduled && (c.Reason == corev1.PodReasonUnschedulable || c.Reason == corev1.PodReasonSchedulerError)
			}) {
				return fmt.Errorf("%s has not been tried", p.Name)
			}
		}
		if allButOne && placed < copies-1 {
			return fmt.Errorf("%d of %d are placed", placed, copies-1)
		}
		return nil
	})
	s.component(t, "kill", "kube-scheduler")
	s.remove(t)
	return placed
}

// create creates the nodes, the pods and the storage objects of a world. A pod that is being deleted keeps its finalizer.
func (s *scheduler) create(t *testing.T, w *world) {
	t.Helper()
	for _, n := range w.nodes {
		created, err := s.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		// The API server adds the taint of a node that is not ready to each new node.
		created.Spec.Taints = n.Spec.Taints
		if _, err := s.CoreV1().Nodes().Update(t.Context(), created, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	uids := map[string]types.UID{}
	for _, p := range w.pods {
		uids[p.Name] = s.createPod(t, p)
		if p.DeletionTimestamp != nil {
			if err := s.CoreV1().Pods(p.Namespace).Delete(t.Context(), p.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.createVolumes(t, w, uids)
}

// createPod creates a pod, and returns its UID.
func (s *scheduler) createPod(t *testing.T, of *corev1.Pod) types.UID {
	t.Helper()
	p := of.DeepCopy()
	p.DeletionTimestamp, p.UID = nil, ""
	for i := range p.OwnerReferences {
		p.OwnerReferences[i].APIVersion = "apps/v1"
	}
	created, err := s.CoreV1().Pods(p.Namespace).Create(t.Context(), p, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created.UID
}

// remove deletes all nodes, pods and storage objects.
func (s *scheduler) remove(t *testing.T) {
	t.Helper()
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	for _, namespace := range []string{"shop", "other"} {
		pods := s.CoreV1().Pods(namespace)
		list, err := pods.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list.Items {
			if len(p.Finalizers) == 0 {
				continue
			}
			if _, err := pods.Patch(t.Context(), p.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := pods.DeleteCollection(t.Context(), now, metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.CoreV1().Nodes().DeleteCollection(t.Context(), now, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	s.removeVolumes(t)
	s.await(t, "all nodes and pods are gone", func() error { return s.isEmpty(t.Context()) })
}

func (s *scheduler) isEmpty(ctx context.Context) error {
	pods, err := s.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	nodes, err := s.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err == nil && len(pods.Items)+len(nodes.Items) > 0 {
		err = fmt.Errorf("%d pods and %d nodes are left", len(pods.Items), len(nodes.Items))
	}
	return err
}
