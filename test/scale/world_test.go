// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// world is how much there is.
type world struct {
	nodes, pods, schedules int
}

// podsPerReplicaSet is how many pods have the same owner.
const podsPerReplicaSet = 30

// app is what the pods of one ReplicaSet have in common.
func app(i int) string { return fmt.Sprintf("service-%05d-7c9d8f6b5d", i/podsPerReplicaSet) }

func podName(i int) string { return fmt.Sprintf("%s-%05x", app(i), i*7919%0xfffff) }

func nodeName(i int) string { return fmt.Sprintf("node-%d", i+1) }

func uid(kind, i int) types.UID {
	return types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", kind, i))
}

// What the containers of a pod request, in thousandths of a core.
func appRequest(i int) int64 { return int64(50 * (1 + i/podsPerReplicaSet%7)) }

const proxyRequest = 10

func requestOf(i int) int64 { return appRequest(i) + proxyRequest }

// podOf makes the i-th pod the way that a cluster has it: two containers, bound,
// ready, with the fields that admission, scheduler and kubelet fill in and who
// set them. It takes about 6 KiB where it is stored.
func podOf(i, nodes int, now time.Time) *corev1.Pod {
	at := metav1.NewTime(now.Add(-time.Hour).Truncate(time.Second))
	account := corev1.VolumeMount{Name: "kube-api-access-x7k2p", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}
	container := func(name string, cpu int64) corev1.Container {
		return corev1.Container{
			Name: name, Image: "registry.example.com/shop/" + name + ":v1.27.3", ImagePullPolicy: corev1.PullIfNotPresent,
			Env:                      []corev1.EnvVar{{Name: "LOG_LEVEL", Value: "info"}, {Name: "LISTEN", Value: ":8080"}, {Name: "DATABASE", Value: "postgres://db.shop.svc:5432/shop"}},
			Ports:                    []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
			VolumeMounts:             []corev1.VolumeMount{account},
			TerminationMessagePath:   "/dev/termination-log",
			TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			ReadinessProbe: &corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Scheme: corev1.URISchemeHTTP}},
				PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
			},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(cpu, resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("64Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
			},
		}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: podName(i), Namespace: metav1.NamespaceDefault, UID: uid(1, i), Generation: 1, CreationTimestamp: at,
			Labels: map[string]string{"app.kubernetes.io/name": app(i), "app.kubernetes.io/part-of": "shop", "pod-template-hash": "7c9d8f6b5d"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app(i), UID: uid(2, i/podsPerReplicaSet), Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: corev1.PodSpec{
			NodeName:      nodeName(i % nodes),
			Containers:    []corev1.Container{container("app", appRequest(i)), container("proxy", proxyRequest)},
			RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst, SchedulerName: corev1.DefaultSchedulerName,
			ServiceAccountName: "default", DeprecatedServiceAccount: "default", EnableServiceLinks: new(true),
			TerminationGracePeriodSeconds: new(int64(30)), Priority: new(int32), SecurityContext: &corev1.PodSecurityContext{},
			PreemptionPolicy: new(corev1.PreemptLowerPriority),
			Tolerations: []corev1.Toleration{
				{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
				{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			},
			Volumes: []corev1.Volume{{Name: account.Name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				DefaultMode: new(int32(420)), Sources: []corev1.VolumeProjection{
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
					{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
				},
			}}}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable, StartTime: &at, HostIP: "10.0.0.1", HostIPs: []corev1.HostIP{{IP: "10.0.0.1"}},
			PodIP: fmt.Sprintf("10.%d.%d.%d", 1+i>>16, i>>8&255, i&255), PodIPs: []corev1.PodIP{{IP: fmt.Sprintf("10.%d.%d.%d", 1+i>>16, i>>8&255, i&255)}},
		},
	}
	for _, condition := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
	} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, ObservedGeneration: 1, LastTransitionTime: at})
	}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: new(true),
			ImageID:            "registry.example.com/shop/" + c.Name + "@sha256:0f5a2f1e4a6d0c7b8e9d3c2b1a0f9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c4b3a2f",
			ContainerID:        fmt.Sprintf("containerd://%064x", i),
			State:              corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
			AllocatedResources: c.Resources.Requests, Resources: &c.Resources,
		})
	}
	// Which fields are set is the same for all.
	fieldsOnce.Do(func() {
		fieldsOfPods = []metav1.ManagedFieldsEntry{
			managed("kube-controller-manager", "", at, map[string]any{"metadata": pod.ObjectMeta, "spec": pod.Spec}),
			managed("kubelet", "status", at, map[string]any{"status": pod.Status}),
		}
	})
	pod.ManagedFields = fieldsOfPods
	return pod
}

var (
	fieldsOnce   sync.Once
	fieldsOfPods []metav1.ManagedFieldsEntry
)

// managed says that a manager has set all these fields.
func managed(manager, subresource string, at metav1.Time, fields map[string]any) metav1.ManagedFieldsEntry {
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		panic(err)
	}
	if text, err = json.Marshal(fieldsOf(tree)); err != nil {
		panic(err)
	}
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(string(text)), Subresource: subresource,
	}
}

// fieldsOf names fields the way that managed fields do, roughly.
func fieldsOf(value any) map[string]any {
	fields := map[string]any{}
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			fields["f:"+name] = fieldsOf(field)
		}
	case []any:
		for _, item := range v {
			if named, ok := item.(map[string]any); ok {
				fields[fmt.Sprintf(`k:{"name":"%v"}`, named["name"])] = fieldsOf(item)
			}
		}
	}
	return fields
}

// replicaSetOf makes the owner of pods from the first on.
func replicaSetOf(first, pods int, now time.Time) *appsv1.ReplicaSet {
	replicas := int32(min(podsPerReplicaSet, pods-first))
	template := podOf(first, 1, now)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: app(first), Namespace: metav1.NamespaceDefault, UID: uid(2, first/podsPerReplicaSet), Generation: 1,
			CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)), Labels: template.Labels,
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: corev1.PodSpec{
				Containers: template.Spec.Containers, RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst,
				SchedulerName: corev1.DefaultSchedulerName, TerminationGracePeriodSeconds: new(int64(30)), SecurityContext: &corev1.PodSecurityContext{},
			}},
		},
		Status: appsv1.ReplicaSetStatus{Replicas: replicas, FullyLabeledReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas, ObservedGeneration: 1},
	}
}

// populate puts the pods there, and their owners. Nobody but the API server
// looks on meanwhile: else three more clients would follow each pod.
func (r *run) populate(t *testing.T) (bytes int) {
	t.Helper()
	for _, component := range onlookers {
		r.Component(t, "kill", component)
	}
	now := time.Now()
	var pending []operation
	put := func(key string, value []byte, err error) {
		if err != nil {
			t.Fatal(err)
		}
		bytes += len(value)
		pending = append(pending, operation{key, value})
		if len(pending) == txnSize {
			r.write(t, pending)
			pending = nil
		}
	}
	template := podOf(0, 1, now)
	for i := range r.pods {
		if i%podsPerReplicaSet == 0 {
			template = podOf(i, r.nodes, now)
			value, err := stored(replicaSetOf(i, r.pods, now), appsv1.SchemeGroupVersion)
			put("/registry/replicasets/default/"+app(i), value, err)
		}
		// The pods of a ReplicaSet differ in little.
		pod := *template
		pod.Name, pod.UID, pod.Spec.NodeName = podName(i), uid(1, i), nodeName(i%r.nodes)
		value, err := stored(&pod, corev1.SchemeGroupVersion)
		r.there[i] = true
		r.requested += requestOf(i)
		put(podKey(&pod), value, err)
	}
	r.write(t, pending)
	r.Component(t, "start", kubelets)
	if !r.scarce {
		r.Component(t, "start", controllerManager)
		r.Component(t, "start", scheduler)
	}
	return bytes
}

// onlookers are the components that follow all pods.
var onlookers = []string{controllerManager, scheduler, kubelets}

const (
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kubelets          = "kubelets"
)

func (r *run) write(t *testing.T, operations []operation) {
	t.Helper()
	if len(operations) == 0 {
		return
	}
	if err := r.etcd.write(operations); err != nil {
		t.Fatal(err)
	}
}
