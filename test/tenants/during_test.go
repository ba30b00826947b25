// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// underway waits until a restart of the hostile tenant is in progress.
func underway(t *testing.T, r *tidekeeperv1.ScheduledRestart) {
	t.Helper()
	framework.EventuallyWithin(t, patience, "the restart of "+r.Name+" is in progress", func() error {
		if cluster.Refresh(t, r); r.Status.Active == nil {
			return fmt.Errorf("it is not: %+v", r.Status)
		}
		return nil
	})
}

// endless sets fields that let a restart run for a day, so that it does not end during the tests.
func endless(r *tidekeeperv1.ScheduledRestart) {
	r.Spec.Suspend, r.Spec.ProgressDeadlineSeconds, r.Spec.Precondition = true, 86400, tidekeeperv1.PreconditionNone
}

// paddedDuring makes ScheduledRestarts too large for a status write while their restarts are in
// progress. The restarts must release their slots nevertheless.
func (s *stage) paddedDuring(t *testing.T) {
	most := 0
	for n, namespace := range evil {
		for i := range slots / 2 {
			name := fmt.Sprint("swollen-", i)
			r := ask(restart(namespace, name, endless), now())
			s.keeps(t, neverEnding(namespace, name, int32(22000+100*n+i)), r)
			underway(t, r)
			if most == 0 {
				most = s.mostFinalizers(t, r)
			}
			framework.Eventually(t, "it is as large as possible", func() error {
				err := s.pad(t, r, most)
				if err != nil {
					most = s.mostFinalizers(t, r)
				}
				return err
			})
		}
	}
}

// soon returns a time later than the creation of all existing objects, formatted for a restart
// request.
func soon() string { return time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339) }

// unreadableDuring makes the targets of restarts in progress unreadable: the API server answers 500
// to a read of one target's scale, and another target has an invalid selector. The restarts must
// release their slots nevertheless.
func (s *stage) unreadableDuring(t *testing.T) {
	s.install(t, "squad", "squads")
	s.install(t, "rollout", "rollouts")
	for _, namespace := range evil {
		squad := s.custom(t, "example.com/v1", "Squad", namespace, map[string]any{"replicas": int64(1)},
			map[string]any{"replicas": int64(1), "selector": "app=broken"})
		pod := bound("broken", "herd-1", 0)
		pod.Namespace, pod.Labels = namespace, map[string]string{"app": "broken"}
		s.keeps(t, pod)
		// The request must be later than the creation of the pod, however long that took.
		byScale := ask(restart(namespace, "broken-squad", func(r *tidekeeperv1.ScheduledRestart) {
			endless(r)
			r.Spec.Method = tidekeeperv1.MethodEvict
			r.Spec.TargetRef = tidekeeperv1.TargetRef{APIVersion: "example.com/v1", Kind: "Squad", Name: "broken"}
		}), soon())
		s.keeps(t, byScale)
		underway(t, byScale)
		if err := cluster.Patch(t.Context(), squad, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":null}}`))); err != nil {
			t.Fatal(err)
		}
		rollout := s.custom(t, "argoproj.io/v1alpha1", "Rollout", namespace, map[string]any{
			"replicas": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": "broken"}},
		}, map[string]any{"observedGeneration": "1", "updatedReplicas": int64(1), "availableReplicas": int64(1), "phase": "Healthy"})
		bySelector := ask(restart(namespace, "broken-rollout", func(r *tidekeeperv1.ScheduledRestart) {
			endless(r)
			r.Spec.MaxPodAgeSeconds = 300
			r.Spec.TargetRef = tidekeeperv1.TargetRef{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Name: "broken"}
		}), now())
		s.keeps(t, bySelector)
		underway(t, bySelector)
		if err := cluster.Patch(t.Context(), rollout, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"selector":{"matchExpressions":[{"key":"a b","operator":"Near"}]}}}`))); err != nil {
			t.Fatal(err)
		}
	}
}

// install installs a CRD from a file. The tenant may write its objects, and the manager may read
// their scale.
func (s *stage) install(t *testing.T, file, resource string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(framework.Root(), "test", "e2e", "testdata", file+"_crd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, crd); err != nil {
		t.Fatal(err)
	}
	if err := client.IgnoreAlreadyExists(cluster.Create(t.Context(), crd)); err != nil {
		t.Fatal(err)
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	for name, subject := range map[string]rbacv1.Subject{
		"manager": {Kind: rbacv1.ServiceAccountKind, Namespace: framework.ManagerNamespace, Name: framework.ManagerAccount},
		"mallory": {APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "mallory"},
	} {
		rules := []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource, resource + "/scale"}, Verbs: []string{"get", "list", "watch", "patch", "create"}}}
		about := metav1.ObjectMeta{Name: name + "-" + resource}
		for _, o := range []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: about, Rules: rules},
			&rbacv1.ClusterRoleBinding{ObjectMeta: about, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: about.Name}, Subjects: []rbacv1.Subject{subject}},
		} {
			if err := client.IgnoreAlreadyExists(cluster.Create(t.Context(), o)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// custom creates an object of a kind that [stage.install] has installed, with the status that the
// kind's controller would write.
func (s *stage) custom(t *testing.T, version, kind, namespace string, spec, status map[string]any) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	framework.Eventually(t, kind+" is served", func() error {
		o.Object = map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"namespace": namespace, "name": "broken"}, "spec": spec}
		return client.IgnoreAlreadyExists(cluster.Create(t.Context(), o))
	})
	before := o.DeepCopy()
	o.Object["status"] = status
	if err := cluster.Status().Patch(t.Context(), o, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	return o
}

// ageLooks creates many ScheduledRestarts that check the age of a large namespace's pods at the
// same time, when their window opens.
func (s *stage) ageLooks(t *testing.T) {
	for i := range 150 {
		pod := bound(fmt.Sprint("crowd-", i), fmt.Sprintf("herd-%d", i%100+1), 0)
		pod.Namespace = evil[1]
		s.makes(t, pod)
	}
	s.makes(t, workload(evil[1], "crowd", 1, nil))
	for i := range 60 {
		s.makes(t, restart(evil[1], fmt.Sprint("look-", i), func(r *tidekeeperv1.ScheduledRestart) {
			r.Spec.TargetRef.Name, r.Spec.Schedule, r.Spec.MaxPodAgeSeconds = "crowd", "", 864000
			r.Spec.Windows = []tidekeeperv1.RestartWindow{{Schedule: "* * * * *", DurationSeconds: 60}}
		}))
	}
}

// manyTolerations creates pods of about the maximum size that etcd accepts. They consist of many
// small elements, which need much more space in memory.
func (s *stage) manyTolerations(t *testing.T) {
	for i := range 10 {
		pod := bound(fmt.Sprint("patient-", i), "", 0)
		pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "nowhere"}
		pod.Spec.Tolerations = make([]corev1.Toleration, 50_000)
		for j := range pod.Spec.Tolerations {
			pod.Spec.Tolerations[j].Operator = corev1.TolerationOpExists
		}
		s.makes(t, pod)
	}
}

// editedHub repeatedly edits a ScheduledRestart that 100 others run after, while the neighbour is
// served.
func (s *stage) editedHub(t *testing.T) {
	hub := restart(evil[0], "hub", func(r *tidekeeperv1.ScheduledRestart) { r.Spec.Suspend = true })
	s.makes(t, hub)
	for i := range 100 {
		s.makes(t, restart(evil[0], fmt.Sprintf("spoke-%02d", i), func(r *tidekeeperv1.ScheduledRestart) {
			r.Spec.Suspend, r.Spec.After = true, []string{"hub"}
			for j := range min(i, 7) {
				r.Spec.After = append(r.Spec.After, fmt.Sprintf("spoke-%02d", i-j-1))
			}
		}))
	}
	edits, stop := 0, make(chan struct{})
	done := make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			edits++
			patch := fmt.Appendf(nil, `{"spec":{"historyLimit":%d}}`, edits%100+1)
			if err := s.mallory.Patch(t.Context(), hub.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
				done <- err
				return
			}
		}
	}()
	s.served(t)
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Logf("%d edits", edits)
}

// sharedConfig edits one of many ConfigMaps that many workloads share. The manager must not read
// each ConfigMap once per workload.
func (s *stage) sharedConfig(t *testing.T) {
	const shared, workloads = 20, 40
	var all []client.Object
	for i := range shared {
		all = append(all, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: evil[0], Name: fmt.Sprint("shared-", i)}, Data: map[string]string{"a": "a"}})
	}
	for i := range workloads {
		name := fmt.Sprint("user-", i)
		all = append(all, workload(evil[0], name, 0, func(template *corev1.PodTemplateSpec) {
			for i := range shared {
				template.Spec.Containers[0].EnvFrom = append(template.Spec.Containers[0].EnvFrom, corev1.EnvFromSource{
					ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprint("shared-", i)}},
				})
			}
		}), restart(evil[0], name, func(r *tidekeeperv1.ScheduledRestart) {
			r.Spec.Schedule, r.Spec.OnConfigChange, r.Spec.MinIntervalSeconds = "", tidekeeperv1.ConfigMapsOnly, 1
		}))
	}
	// The limit below is for reads of reconciles that began in this time, which begin with the
	// creation of the ScheduledRestarts.
	audit, since := cluster.Audit(t, "tidekeeper/"), time.Now()
	s.makes(t, all...)
	if err := s.mallory.Patch(t.Context(), all[0].DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(`{"data":{"a":"b"}}`))); err != nil {
		t.Fatal(err)
	}
	s.servedByManager(t)
	reads := map[string]int{}
	for _, q := range audit.Requests(t) {
		if q.Resource == "configmaps" && q.Namespace == evil[0] && q.Verb == "get" {
			reads[q.Name]++
		}
	}
	// Restarts that read the same object within a second share the response.
	most := int(time.Since(since)/time.Second) + 2
	for name, n := range reads {
		if n > most {
			t.Errorf("%d reads of ConfigMap %s in %s, want at most one a second", n, name, time.Since(since))
		}
	}
	t.Logf("%v reads of %d ConfigMaps that %d workloads use, in %s", slices.Sorted(maps.Values(reads)), shared, workloads, time.Since(since).Round(time.Second))
}

// unservedKinds creates ScheduledRestarts whose targets have kinds that the API server does not
// serve. The manager must not look up the kinds again and again.
func (s *stage) unservedKinds(t *testing.T) {
	audit, since := cluster.Audit(t, "tidekeeper/"), time.Now()
	for i := range 200 {
		s.makes(t, restart(evil[0], fmt.Sprint("unserved-", i), func(r *tidekeeperv1.ScheduledRestart) {
			r.Spec.Suspend, r.Spec.Method = true, tidekeeperv1.MethodEvict
			r.Spec.TargetRef = tidekeeperv1.TargetRef{APIVersion: "apps/v1", Kind: fmt.Sprint("Foo", i), Name: "foo"}
		}))
	}
	s.servedByManager(t)
	asked := 0
	for _, q := range audit.Requests(t) {
		if q.Resource == "" && q.Verb == "get" {
			asked++
		}
	}
	// Ten kinds may be looked up per minute. Each lookup requests the kind's group and the list of
	// groups.
	minutes := int(time.Since(since)/time.Minute) + 2
	if asked > 30*minutes {
		t.Errorf("%d requests for kinds that are not served in %d minutes", asked, minutes)
	}
	t.Logf("%d requests for kinds that are not served", asked)
}
