// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/podcount"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

func TestTransformNode(t *testing.T) {
	now := metav1.Now()
	has := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	metadata := metav1.ObjectMeta{
		Name: "n1", UID: "1", ResourceVersion: "2", DeletionTimestamp: &now,
		Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"},
	}
	taints := []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoExecute, TimeAdded: &now}}
	sent := metadata
	sent.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	got, err := transformNode(&corev1.Node{
		ObjectMeta: sent,
		Spec:       corev1.NodeSpec{Taints: taints, Unschedulable: true, ProviderID: "cloud://n1"},
		Status: corev1.NodeStatus{
			Phase: corev1.NodeRunning, Capacity: has, Allocatable: has, Images: []corev1.ContainerImage{{SizeBytes: 1}},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: now, Message: "kubelet is posting ready status"},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &corev1.Node{
		ObjectMeta: metadata,
		Spec:       corev1.NodeSpec{Taints: taints, Unschedulable: true},
		Status: corev1.NodeStatus{
			Capacity: has, Allocatable: has, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("what the cache keeps of a node (-want +got):\n%s", diff)
	}
}

func TestTransformWorkload(t *testing.T) {
	// If sent is true, the result also contains the fields that the transform drops.
	metadata := func(sent bool) metav1.ObjectMeta {
		m := metav1.ObjectMeta{
			Name: "web", Namespace: "shop", UID: "1", ResourceVersion: "2", Generation: 3,
			Labels: map[string]string{podcount.Label: "2"}, Annotations: map[string]string{tidekeeperv1.OptInAnnotation: "true"},
			OwnerReferences: []metav1.OwnerReference{{Name: "owner", Controller: new(true)}},
		}
		if sent {
			m.OwnerReferences = append([]metav1.OwnerReference{{Name: "another"}}, m.OwnerReferences...)
			m.Finalizers = []string{"example.com/f"}
			m.Labels["a"] = "b"
			m.Annotations["c"] = "d"
			m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
		}
		return m
	}
	template := func(sent bool) corev1.PodTemplateSpec {
		p := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{tidekeeperv1.RestartedAtAnnotation: "2026-01-31T15:04:05Z"}}}
		if sent {
			p.Labels, p.Annotations["e"] = map[string]string{"a": "b"}, "f"
			p.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}
		}
		return p
	}
	claims := func(sent bool) []corev1.PersistentVolumeClaim {
		if sent {
			return []corev1.PersistentVolumeClaim{{}}
		}
		return nil
	}
	replicas := int32(2)
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	deployment := func(sent bool) any {
		return &appsv1.Deployment{
			ObjectMeta: metadata(sent),
			Spec: appsv1.DeploymentSpec{
				Replicas: &replicas, Selector: selector, Paused: true, Template: template(sent),
				Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			},
			Status: appsv1.DeploymentStatus{ObservedGeneration: 3, UpdatedReplicas: 1},
		}
	}
	statefulSet := func(sent bool) any {
		return &appsv1.StatefulSet{
			ObjectMeta: metadata(sent),
			Spec: appsv1.StatefulSetSpec{
				Replicas: &replicas, Selector: selector, Template: template(sent), VolumeClaimTemplates: claims(sent),
				UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
			},
			Status: appsv1.StatefulSetStatus{ObservedGeneration: 3, UpdateRevision: "r"},
		}
	}
	daemonSet := func(sent bool) any {
		return &appsv1.DaemonSet{
			ObjectMeta: metadata(sent),
			Spec: appsv1.DaemonSetSpec{
				Selector: selector, Template: template(sent),
				UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType},
			},
			Status: appsv1.DaemonSetStatus{ObservedGeneration: 3, DesiredNumberScheduled: 2},
		}
	}
	replicaSet := func(sent bool) any {
		set := &appsv1.ReplicaSet{
			ObjectMeta: metadata(sent),
			Spec:       appsv1.ReplicaSetSpec{Replicas: &replicas, Template: template(sent)},
			Status:     appsv1.ReplicaSetStatus{ObservedGeneration: 3, Replicas: 2},
		}
		if sent {
			set.Spec.Selector = selector
		}
		return set
	}
	rollout := func(sent bool) any {
		labels := map[string]any{"matchLabels": map[string]any{"app": "web"}}
		spec := map[string]any{"replicas": int64(2), "restartAt": "2026-06-10T03:00:00Z", "selector": labels}
		status := map[string]any{"observedGeneration": "3", "phase": "Healthy"}
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "spec": spec, "status": status}}
		u.SetName("web")
		if sent {
			spec["strategy"], spec["template"] = map[string]any{"canary": map[string]any{}}, map[string]any{}
			status["conditions"] = []any{}
			u.SetLabels(map[string]string{"team": "a"})
		}
		return u
	}
	for name, newObject := range map[string]func(bool) any{
		"Deployment": deployment, "StatefulSet": statefulSet, "DaemonSet": daemonSet, "ReplicaSet": replicaSet, "Rollout": rollout,
	} {
		object := newObject(true).(client.Object)
		got, err := transformOf(object)(object)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(newObject(false), got); diff != "" {
			t.Errorf("what the cache keeps of a %s (-want +got):\n%s", name, diff)
		}
	}
}

// TestTransformRestart checks that the cache keeps only the ScheduledRestart metadata that
// controllers read, because users control the rest.
func TestTransformRestart(t *testing.T) {
	restart := &tidekeeperv1.ScheduledRestart{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Labels: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
			Finalizers: []string{"example.com/f"}, OwnerReferences: []metav1.OwnerReference{{Name: "another"}},
			Annotations: map[string]string{
				"c": "d", tidekeeperv1.AppliedAnnotation: "{}",
				tidekeeperv1.RestartNowAnnotation: strings.Repeat("x", 2*longestKept),
			},
		},
		Spec: tidekeeperv1.ScheduledRestartSpec{Schedule: "0 3 * * *"},
	}
	want := &tidekeeperv1.ScheduledRestart{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{
			tidekeeperv1.AppliedAnnotation: "{}", tidekeeperv1.RestartNowAnnotation: strings.Repeat("x", longestKept),
		}},
		Spec: restart.Spec,
	}
	got, err := transformRestart(restart)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the cache keeps of a ScheduledRestart (-want +got):\n%s", diff)
	}
}

func TestTransformsRefuseOtherKinds(t *testing.T) {
	for name, transform := range map[string]func(any) (any, error){
		"pod": transformPod, "node": transformNode, "workload": transformWorkload(workload.Deployment), "replica set": transformReplicaSet, "restart": transformRestart, "config": transformConfig, "any": transformByDefault,
	} {
		if got, err := transform("a string"); err == nil {
			t.Errorf("%s: got %v, want an error", name, got)
		}
	}
}

func transformed(t interface{ Fatalf(string, ...any) }, pod *corev1.Pod) *corev1.Pod {
	out, err := transformPod(pod)
	if err != nil {
		t.Fatalf("transformPod: %v", err)
	}
	return out.(*corev1.Pod)
}

func drawPod(t *rapid.T) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", Labels: map[string]string{"a": "b"}},
		Spec: corev1.PodSpec{
			NodeName: rapid.SampledFrom([]string{"", "n1"}).Draw(t, "nodeName"),
			Overhead: drawResources(t, "overhead"),
		},
		Status: corev1.PodStatus{
			Phase:              rapid.SampledFrom([]corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodFailed}).Draw(t, "phase"),
			AllocatedResources: drawResources(t, "allocated"),
		},
	}
	if rapid.Bool().Draw(t, "pod-level resources") {
		pod.Spec.Resources = &corev1.ResourceRequirements{
			Requests: drawResources(t, "pod requests"), Limits: drawResources(t, "pod limits"),
		}
	}
	if rapid.Bool().Draw(t, "pod-level status") {
		pod.Status.Resources = &corev1.ResourceRequirements{
			Requests: drawResources(t, "status requests"), Limits: drawResources(t, "status limits"),
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "conditions") {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type:   rapid.SampledFrom([]corev1.PodConditionType{corev1.PodReady, corev1.PodResizePending}).Draw(t, "condition"),
			Reason: rapid.SampledFrom([]string{corev1.PodReasonInfeasible, corev1.PodReasonDeferred}).Draw(t, "reason"),
		})
	}
	if rapid.Bool().Draw(t, "claim") {
		perPod := resource.MustParse("1")
		pod.Status.NodeAllocatableResourceClaimStatuses = []corev1.NodeAllocatableResourceClaimStatus{{
			Containers: []string{"c0"},
			Mapping:    []corev1.NodeAllocatableMappedResources{{Name: corev1.ResourceCPU, Quantity: &perPod}},
			Overhead:   []corev1.NodeAllocatableOverheadResources{{Name: corev1.ResourceMemory, PerPod: &perPod, PerContainer: &perPod}},
		}}
	}
	pod.Spec.Containers, pod.Status.ContainerStatuses = drawContainers(t, "c")
	pod.Spec.InitContainers, pod.Status.InitContainerStatuses = drawContainers(t, "i")
	return pod
}

func drawContainers(t *rapid.T, prefix string) ([]corev1.Container, []corev1.ContainerStatus) {
	var containers []corev1.Container
	var statuses []corev1.ContainerStatus
	for i := range rapid.IntRange(0, 3).Draw(t, "containers") {
		c := corev1.Container{
			Name:  prefix + string(rune('0'+i)),
			Image: "image",
			Resources: corev1.ResourceRequirements{
				Requests: drawResources(t, "requests"), Limits: drawResources(t, "limits"),
			},
		}
		if rapid.Bool().Draw(t, "sidecar") {
			always := corev1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		containers = append(containers, c)

		if !rapid.Bool().Draw(t, "has status") {
			continue
		}
		s := corev1.ContainerStatus{Name: c.Name, Image: "image"}
		// Independently drawn resources would rarely be equal, although a status usually repeats
		// the resources in the spec.
		drawOrRepeat := func(label string) corev1.ResourceList {
			if rapid.Bool().Draw(t, label+" repeats the spec") {
				return c.Resources.Requests.DeepCopy()
			}
			return drawResources(t, label)
		}
		s.AllocatedResources = drawOrRepeat("allocated")
		if rapid.Bool().Draw(t, "has resources") {
			s.Resources = &corev1.ResourceRequirements{Requests: drawOrRepeat("actual"), Limits: drawResources(t, "actual limits")}
		}
		statuses = append(statuses, s)
	}
	return containers, statuses
}

func drawResources(t *rapid.T, label string) corev1.ResourceList {
	return rapid.OneOf(
		rapid.Just(corev1.ResourceList(nil)),
		rapid.Map(rapid.MapOfN(
			rapid.SampledFrom([]corev1.ResourceName{
				corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, "hugepages-2Mi", "example.com/gpu",
			}),
			rapid.Int64Range(0, 3), 0, 5,
		), func(amounts map[corev1.ResourceName]int64) corev1.ResourceList {
			list := corev1.ResourceList{}
			for name, amount := range amounts {
				list[name] = *resource.NewQuantity(amount, resource.DecimalSI)
			}
			return list
		}),
	).Draw(t, label)
}
