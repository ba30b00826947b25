// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/capacity"
)

// world is a random cluster, and a pod whose copies are to be placed.
type world struct {
	*rand.Rand
	seed  uint64
	nodes []*corev1.Node
	pods  []*corev1.Pod
	copy  *corev1.Pod
	// volumes holds the storage objects. A third of the worlds has none.
	volumes *capacity.Volumes
}

// newWorld returns a random cluster, whose pods may have volumes.
func newWorld(seed uint64) *world {
	w := newPlainWorld(seed)
	w.addVolumes()
	return w
}

// newPlainWorld returns a random cluster without volumes.
func newPlainWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), seed: seed, volumes: &capacity.Volumes{}}
	w.addNodes()
	w.addDaemonSet()
	w.addPods()
	w.copy = w.pod("copy", oneOf(w, "web", "db"))
	w.copy.UID = ""
	w.constrain(w.copy, 80)
	return w
}

// chance returns true with the given probability.
func (w *world) chance(percent int) bool { return w.IntN(100) < percent }

// oneOf returns a randomly chosen argument.
func oneOf[T any](w *world, of ...T) T { return of[w.IntN(len(of))] }

func list(cpu, memory, pods string) corev1.ResourceList {
	l := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	if pods != "" {
		l[corev1.ResourcePods] = resource.MustParse(pods)
	}
	return l
}

// addNodes adds up to twelve nodes of several shapes, in up to three zones.
func (w *world) addNodes() {
	zones := []string{"a", "b", "c"}[:1+w.IntN(3)]
	for i := range 1 + w.IntN(12) {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("node-", i), UID: types.UID(fmt.Sprint("node-", i)), Labels: map[string]string{corev1.LabelHostname: fmt.Sprint("node-", i)},
		}}
		if !w.chance(5) {
			n.Labels[corev1.LabelTopologyZone] = oneOf(w, zones...)
		}
		if w.chance(70) {
			n.Labels["disk"] = oneOf(w, "ssd", "hdd")
		}
		if w.chance(15) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "example.com/dedicated", Value: "x", Effect: oneOf(w, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)})
		}
		if w.chance(6) {
			n.Spec.Unschedulable = true
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
		}
		n.Status.Allocatable = list(oneOf(w, "2", "4", "8"), oneOf(w, "4Gi", "8Gi", "16Gi"), oneOf(w, "5", "10", "20"))
		n.Status.Capacity = n.Status.Allocatable
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		w.nodes = append(w.nodes, n)
	}
}

// pod returns a pod of a workload.
func (w *world) pod(name, app string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name), Labels: map[string]string{"app": app},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: app, UID: types.UID(app), Controller: new(true)}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "app", Image: "example.com/app:1", Resources: corev1.ResourceRequirements{Requests: list(oneOf(w, "100m", "500m", "1", "1500m"), oneOf(w, "100Mi", "1Gi", "2Gi"), "")},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// addDaemonSet may add a pod to each node.
func (w *world) addDaemonSet() {
	if !w.chance(40) {
		return
	}
	for _, n := range w.nodes {
		pod := w.pod("agent-"+n.Name, "agent")
		pod.OwnerReferences[0].Kind = "DaemonSet"
		pod.Spec.Containers[0].Resources.Requests = list("100m", "100Mi", "")
		pod.Spec.NodeName = n.Name
		if w.chance(30) {
			pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8080}}
		}
		w.pods = append(w.pods, pod)
	}
}

// addPods adds running pods of some workloads, some with constraints, bound to any node. A node may
// be overcommitted by them.
func (w *world) addPods() {
	for i := range w.IntN(4) {
		app := []string{"web", "db", "cache"}[i]
		example := w.pod("", app)
		w.constrain(example, 30)
		for k := range w.IntN(5) {
			pod := example.DeepCopy()
			pod.Name = fmt.Sprintf("%s-%d", app, k)
			pod.UID = types.UID(pod.Name)
			pod.Spec.NodeName = oneOf(w, w.nodes...).Name
			if w.chance(5) {
				pod.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time}
				pod.Finalizers = []string{"example.com/x"}
			}
			if w.chance(10) {
				pod.Namespace, pod.OwnerReferences[0].UID = "other", types.UID("other-"+app)
			}
			w.pods = append(w.pods, pod)
		}
	}
}

// constrain gives the pod constraints as charts have them, each in some percent of the pods.
func (w *world) constrain(pod *corev1.Pod, percent int) {
	if w.chance(25) {
		pod.Spec.Tolerations = []corev1.Toleration{{Key: "example.com/dedicated", Operator: corev1.TolerationOpExists}}
	}
	if w.chance(20) {
		pod.Spec.NodeSelector = map[string]string{"disk": oneOf(w, "ssd", "hdd")}
	}
	if !w.chance(percent) {
		return
	}
	pod.Spec.Affinity = &corev1.Affinity{}
	self := map[string]string{"app": pod.Labels["app"]}
	switch w.IntN(10) {
	case 0:
		w.spread(pod, self, corev1.LabelTopologyZone)
	case 1:
		w.spread(pod, self, corev1.LabelHostname)
	case 2:
		w.spread(pod, self, corev1.LabelTopologyZone)
		w.spread(pod, self, corev1.LabelHostname)
	case 3, 4:
		w.antiAffinity(pod, self, corev1.LabelHostname)
	case 5:
		w.antiAffinity(pod, self, corev1.LabelHostname)
		w.spread(pod, self, corev1.LabelTopologyZone)
	case 6:
		w.antiAffinity(pod, oneOf(w, self, map[string]string{"app": "cache"}), corev1.LabelTopologyZone)
	case 7:
		w.affinity(pod, map[string]string{"app": oneOf(w, "web", "db", "cache")}, oneOf(w, corev1.LabelTopologyZone, corev1.LabelHostname))
	case 8:
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: oneOf(w, int32(8080), 9090), HostIP: oneOf(w, "", "", "10.0.0.1"), Protocol: oneOf(w, corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP)}}
	default:
		w.spread(pod, map[string]string{"app": "cache"}, oneOf(w, corev1.LabelTopologyZone, corev1.LabelHostname))
		w.antiAffinity(pod, map[string]string{"app": "db"}, corev1.LabelHostname)
	}
}

func (w *world) spread(pod *corev1.Pod, of map[string]string, key string) {
	c := corev1.TopologySpreadConstraint{
		MaxSkew: int32(1 + w.IntN(3)), TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: of},
	}
	if w.chance(15) {
		c.WhenUnsatisfiable = corev1.ScheduleAnyway
	} else if w.chance(20) {
		c.MinDomains = new(int32(1 + w.IntN(3)))
	}
	if w.chance(20) {
		c.NodeAffinityPolicy = new(oneOf(w, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore))
	}
	if w.chance(30) {
		c.NodeTaintsPolicy = new(oneOf(w, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore))
	}
	pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, c)
}

func (w *world) term(of map[string]string, key string) corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: of}}
	if w.chance(15) {
		t.Namespaces = []string{"other", "shop"}[w.IntN(2):]
	}
	if w.chance(10) {
		t.NamespaceSelector = &metav1.LabelSelector{}
	}
	return t
}

func (w *world) antiAffinity(pod *corev1.Pod, of map[string]string, key string) {
	pod.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{w.term(of, key)}}
}

func (w *world) affinity(pod *corev1.Pod, of map[string]string, key string) {
	pod.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{w.term(of, key)}}
}
