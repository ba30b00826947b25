// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func metadataHas(name string) bool {
	_, ok := reflect.TypeFor[metav1.ObjectMeta]().FieldByName(name)
	return ok
}

// wholeReads lists the reads of fields that the cache drops, by package and path. They are allowed
// because the functions also process complete pods that are not from the cache, for the given
// reason.
var wholeReads = []struct{ pkg, path, reason string }{
	{"internal/pods/podtimeline", "Pod.ObjectMeta.Annotations", "restarts summarize whole pods that they read from the API server"},
	{"internal/pods/podtimeline", "Pod.Spec.ReadinessGates", "restarts summarize whole pods that they read from the API server"},
	{"internal/pods/podtimeline", "Pod.Status.ContainerStatuses", "restarts summarize whole pods that they read from the API server"},
	{"internal/pods/podtimeline", "Pod.Status.InitContainerStatuses", "restarts summarize whole pods that they read from the API server"},
	{"internal/pods/podtimeline", "Pod.Status.StartTime", "restarts summarize whole pods that they read from the API server"},
	{"internal/capacity", "Pod.Spec.Affinity.PodAffinity", "a constraint between pods, which only the plugin evaluates, of whole pods"},
	{"internal/capacity", "Pod.Spec.Affinity.PodAntiAffinity", "a constraint between pods, which only the plugin evaluates, of whole pods"},
	{"internal/capacity", "Pod.Spec.Containers.Ports", "a constraint between pods, which only the plugin evaluates, of whole pods"},
	{"internal/capacity", "Pod.Spec.HostNetwork", "a constraint between pods, which only the plugin evaluates, of whole pods"},
	{"internal/capacity", "Pod.Spec.InitContainers.Ports", "a constraint between pods, which only the plugin evaluates, of whole pods"},
	{"internal/capacity", "Pod.Spec.ResourceClaims", "a constraint on devices, which only the plugin evaluates, of whole pods"},
	{"internal/capacity", "Pod.Spec.SchedulingGates", "a constraint that is not evaluated, which only the plugin reports, of whole pods"},
	{"internal/capacity", "Pod.Spec.SchedulingGroup", "a constraint that is not evaluated, which only the plugin reports, of whole pods"},
	{"internal/capacity", "Pod.Spec.TopologySpreadConstraints", "a constraint between pods, which only the plugin evaluates, of whole pods"},
	{"internal/capacity", "Pod.Spec.Volumes", "a constraint that is not evaluated, which only the plugin reports, of whole pods"},
	{"internal/capacity", "Pod.Status.ResourceClaimStatuses", "a constraint on devices, which only the plugin evaluates, of whole pods"},
	{"internal/drain", "Pod.ObjectMeta.Annotations", "the cache keeps what follows from it as facts about the pod; maintenance and plugin look at whole pods"},
	{"internal/drain", "Pod.ObjectMeta.Finalizers", "the cache keeps what follows from it as facts about the pod; maintenance and plugin look at whole pods"},
	{"internal/drain", "Pod.Spec.TerminationGracePeriodSeconds", "the cache keeps what follows from it as facts about the pod; maintenance and plugin look at whole pods"},
	{"internal/drain", "Pod.Spec.Volumes", "the cache keeps what follows from it as facts about the pod; maintenance and plugin look at whole pods"},
	{"internal/maintenance/moves", "Pod.ObjectMeta.Annotations", "drains look at whole pods that they read from the API server"},
	{"internal/maintenance/moves", "Pod.ObjectMeta.Finalizers", "drains look at whole pods that they read from the API server"},
}

// TestControllersReadCachedFields checks that the cache keeps all Pod and Node fields that
// controllers read; a dropped field would silently be read as its zero value. The reads are found
// in the source code, so that new reads need not be listed here. The check does not cover label and
// annotation keys and condition types.
func TestControllersReadCachedFields(t *testing.T) {
	kept := map[string]bool{}
	for _, s := range []*stored{storedPods(t), storedNodes(t)} {
		for _, object := range s.want {
			addPaths(kept, s.kind, reflect.ValueOf(object).Elem())
		}
	}
	fill := filler(3).NilChance(0).NumElements(1, 1).MaxDepth(20)
	for range 100 {
		pod := &corev1.Pod{}
		fill.Fill(pod)
		addPaths(kept, "Pod", reflect.ValueOf(transformed(t, pod)).Elem())
	}
	found := readsOf(t, "tidekeeper.dev/tidekeeper/internal/manager", "controllers", "")
	if len(found) < 100 {
		t.Errorf("only %d reads are found: %v", len(found), found)
	}
	used := map[int]bool{}
	for r, at := range found {
		if kept[r.path] {
			continue
		}
		i := slices.IndexFunc(wholeReads, func(w struct{ pkg, path, reason string }) bool {
			return strings.HasSuffix(r.pkg, "/"+w.pkg) && (r.path + ".")[:min(len(r.path), len(w.path))+1] == w.path+"."
		})
		if used[i] = true; i < 0 {
			t.Errorf("%s: %s is read, but the cache does not keep it: add it to the transform and to the fields that are decoded", at, r.path)
		}
	}
	for i, w := range wholeReads {
		if !used[i] {
			t.Errorf("%s reads nothing below %s: remove it from wholeReads", w.pkg, w.path)
		}
	}
}

// addPaths adds the paths of a value's non-zero fields.
func addPaths(to map[string]bool, path string, v reflect.Value) {
	if v.IsZero() {
		return
	}
	to[path] = true
	switch v.Kind() {
	case reflect.Pointer:
		addPaths(to, path, v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			addPaths(to, path, v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			addPaths(to, path, v.MapIndex(key))
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			if field.IsExported() {
				addPaths(to, path+"."+field.Name, value)
			}
		}
	}
}

// TestReadsAreFound checks that the analysis finds reads through every kind of access that the code
// uses.
func TestReadsAreFound(t *testing.T) {
	const source = `package probe
import (
	"slices"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)
type state struct{ spec *corev1.PodSpec; statuses []corev1.ContainerStatus }
func root(pod *corev1.Pod, object client.Object, nodes []corev1.Node) {
	_ = pod.Spec.Priority
	spec := &pod.Spec
	for _, c := range spec.Containers { _ = c.Image }
	helper(pod.Spec.Volumes)
	_ = slices.ContainsFunc(pod.Spec.ImagePullSecrets, func(r corev1.LocalObjectReference) bool { return r.Name == "" })
	s := state{spec: spec}
	s.statuses = pod.Status.ContainerStatuses
	_ = s.spec.HostNetwork
	_ = s.statuses[0].ImageID
	if node, ok := object.(*corev1.Node); ok { _ = node.Spec.PodCIDR }
	switch o := object.(type) { case *corev1.Pod: _ = o.Finalizers }
	for i := range nodes { _ = nodes[i].Status.NodeInfo.KernelVersion }
	metadata(pod)
	first(pod).Lifecycle = nil
	_ = first(pod).Command
	_ = pod.DeepCopy().Status.QOSClass
	pod.Spec.Hostname = "written"
	uses := func(c corev1.Container) bool { return c.TTY }
	_ = slices.ContainsFunc(pod.Spec.Containers, uses) || slices.ContainsFunc(pod.Spec.Containers, named)
	var list []corev1.Container
	for _, c := range pod.Spec.Containers { list = append(list, c) }
	_ = list[0].Args
	_ = []corev1.Container{pod.Spec.Containers[0]}[0].Stdin
	last := func() *corev1.Container { return &pod.Spec.Containers[0] }
	_ = last().StdinOnce
	_ = bare(pod).SubPath
	sent := make(chan corev1.Container, 1)
	sent <- pod.Spec.Containers[0]
	_ = (<-sent).WorkingDir
	var through reader = readerOfPorts{}
	through.read(pod.Spec.Containers)
	_ = slices.MaxFunc(pod.Spec.Tolerations, nil).Operator
}
type reader interface{ read([]corev1.Container) }
type readerOfPorts struct{}
func (readerOfPorts) read(of []corev1.Container) { _ = of[0].Ports }
func named(c corev1.Container) bool { return c.ImagePullPolicy == "" }
func bare(pod *corev1.Pod) (found corev1.VolumeMount) { found = pod.Spec.Containers[0].VolumeMounts[0]; return }
func first(pod *corev1.Pod) *corev1.Container { return &pod.Spec.InitContainers[0] }
func helper(volumes []corev1.Volume) { for i := range volumes { v := volumes[i]; _ = v.HostPath.Path } }
func metadata(o client.Object) { _ = o.GetGenerateName() }
func unused(pod *corev1.Pod) { _ = pod.Spec.Subdomain }
`
	found := readsOf(t, "probe", "root", source)
	for _, path := range []string{
		"Node.Spec.PodCIDR", "Node.Status.NodeInfo.KernelVersion", "Pod.ObjectMeta.Finalizers", "Pod.ObjectMeta.GenerateName",
		"Pod.Spec.Containers.Args", "Pod.Spec.Containers.Image", "Pod.Spec.Containers.ImagePullPolicy", "Pod.Spec.Containers.Ports",
		"Pod.Spec.Containers.Stdin", "Pod.Spec.Containers.StdinOnce", "Pod.Spec.Containers.TTY", "Pod.Spec.Containers.VolumeMounts.SubPath",
		"Pod.Spec.Containers.WorkingDir", "Pod.Spec.Tolerations.Operator", "Pod.Spec.HostNetwork", "Pod.Spec.ImagePullSecrets.Name", "Pod.Spec.InitContainers.Command",
		"Pod.Spec.Priority", "Pod.Spec.Volumes.VolumeSource.HostPath.Path", "Pod.Status.ContainerStatuses.ImageID", "Pod.Status.QOSClass",
	} {
		if found[read{"probe", path}] == "" {
			t.Errorf("the read of %s is not found", path)
		}
	}
	for _, path := range []string{"Pod.Spec.Hostname", "Pod.Spec.InitContainers.Lifecycle", "Pod.Spec.Subdomain"} {
		if at := found[read{"probe", path}]; at != "" {
			t.Errorf("%s: %s is taken to be read", at, path)
		}
	}
}
