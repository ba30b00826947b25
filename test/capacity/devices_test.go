// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// simulatedDevices is the annotation by which a simulated node gets devices.
const simulatedDevices = "sandbox.tidekeeper.dev/devices"

// TestFitDevices checks that the scheduler places as many copies of pods with ResourceClaims as
// pools fit reports: by the class of the devices, by selectors of a request, by the number of
// devices, and with a claim that the copies share, before and after it has a device.
func TestFitDevices(t *testing.T) {
	w := newDeviceWorld(t, "devices")
	w.awaitDevices(t)
	for _, c := range []struct {
		name   string
		change func(r *resourcev1.ExactDeviceRequest)
		want   int64
		// refused is a reason why a node takes no copy.
		refused string
	}{
		{"any", func(*resourcev1.ExactDeviceRequest) {}, 5, "no device of class " + w.driver()},
		{"large", func(r *resourcev1.ExactDeviceRequest) {
			r.Selectors = w.selectors(`device.attributes[%q].model == "large"`)
		}, 3, "no device of class " + w.driver() + " for request gpu"},
		{"two", func(r *resourcev1.ExactDeviceRequest) { r.Count = 2 }, 2, "no device of class " + w.driver()},
		{"bigger", func(r *resourcev1.ExactDeviceRequest) {
			r.Selectors = w.selectors(`device.capacity[%q].memory.compareTo(quantity("32Gi")) >= 0`)
		}, 0, "no device of class " + w.driver() + " for request gpu"},
	} {
		w.template(t, c.name, c.change)
		spec := w.claiming(corev1.PodResourceClaim{Name: "gpu", ResourceClaimTemplateName: &c.name})
		w.assertPlaced(t, spec, c.want, "")
		if says := w.fitLike(t, spec); says.Copies != 0 || !slices.ContainsFunc(says.Refused, func(r capacity.Count) bool { return r.What == c.refused }) {
			t.Errorf("%s: with these copies, pools fit reports %+v, want none, and a node with %s", c.name, says, c.refused)
		}
		if c.name == "any" {
			w.assertPending(t)
			w.assertCounts(t, 5, 0)
		}
		w.removeCopies(t)
		w.awaitDevices(t)
	}
	w.assertShared(t)
	w.assertMissing(t)
	w.assertRights(t)
}

// deviceWorld is a world with devices: a node with 1 large and 2 small ones, a node with 2 large
// ones, and a node without devices. The driver is one of the world only.
type deviceWorld struct{ *world }

func newDeviceWorld(t *testing.T, name string) *deviceWorld {
	t.Helper()
	w := &deviceWorld{newWorld(t, name, rand.New(rand.NewPCG(1, 1)))}
	for i, devices := range []string{"large=1,DRIVER/small=2", "large=2", ""} {
		n := framework.Node(fmt.Sprint(name, "-", i))
		n.Labels = map[string]string{worldLabel: name, corev1.LabelHostname: n.Name, corev1.LabelTopologyZone: name + "-a"}
		n.Status.Allocatable = list("cpu", "4", "memory", "4Gi", "pods", "10")
		if devices != "" {
			n.Annotations = map[string]string{simulatedDevices: w.driver() + "/" + strings.ReplaceAll(devices, "DRIVER", w.driver())}
		}
		w.addNode(t, n)
	}
	w.awaitNodes(t)
	t.Cleanup(func() { cluster.Delete(t, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: w.driver()}}) })
	return w
}

// driver is the name of the driver of the world's devices, and of their DeviceClass.
func (w *deviceWorld) driver() string { return w.name + ".example.com" }

// selectors returns a selector with the domain of the attributes of the world's devices for the verb
// %q in the expression.
func (w *deviceWorld) selectors(expression string) []resourcev1.DeviceSelector {
	return []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf(expression, w.driver())}}}
}

// request returns the spec of a claim with a request for one device after a change.
func (w *deviceWorld) request(change func(r *resourcev1.ExactDeviceRequest)) (s resourcev1.ResourceClaimSpec) {
	r := &resourcev1.ExactDeviceRequest{DeviceClassName: w.driver(), AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}
	change(r)
	s.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: r}}
	return s
}

func (w *deviceWorld) template(t *testing.T, name string, change func(r *resourcev1.ExactDeviceRequest)) {
	t.Helper()
	cluster.Apply(t, &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.name}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: w.request(change)}})
}

// claiming returns the spec of a pod with the claim.
func (w *deviceWorld) claiming(claim corev1.PodResourceClaim) corev1.PodSpec {
	s := corev1.PodSpec{
		NodeSelector: map[string]string{worldLabel: w.name}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{container("app", list("cpu", "1"))}, TerminationGracePeriodSeconds: new(int64(0)),
		ResourceClaims: []corev1.PodResourceClaim{claim},
	}
	s.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: claim.Name}}
	return s
}

// fitLike runs pools fit for a pod.
func (w *deviceWorld) fitLike(t *testing.T, spec corev1.PodSpec) fit {
	t.Helper()
	return w.fit(t, manifest(t, w.pod(spec)), "-f", "-")
}

func (w *deviceWorld) pod(spec corev1.PodSpec) *corev1.Pod {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "copy"}, Spec: spec}
}

// awaitDevices waits until no claim of the world has a device, and the plugin sees them all free.
func (w *deviceWorld) awaitDevices(t *testing.T) {
	t.Helper()
	framework.Eventually(t, "all devices are free", func() error { return w.counts(t, 5, 5) })
}

// counts returns an error unless pools describe reports these numbers of devices.
func (w *deviceWorld) counts(t *testing.T, devices, free int) error {
	t.Helper()
	var detail struct{ Devices *capacity.DeviceCounts }
	r := tide(t, "", "", "pools", "describe", w.name, "-o", "json") // Without a manager, stderr has a note.
	if err := json.Unmarshal([]byte(r.stdout), &detail); err != nil {
		return fmt.Errorf("pools describe prints %+v: %w", r, err)
	}
	want := []capacity.DeviceCount{{Class: w.driver(), Devices: devices, Free: free}}
	if got := detail.Devices; got == nil || !slices.Equal(got.Classes, want) || len(got.AtMost) > 0 {
		return fmt.Errorf("pools describe reports %+v, want %+v", got, want)
	}
	return nil
}

func (w *deviceWorld) assertCounts(t *testing.T, devices, free int) {
	t.Helper()
	if err := w.counts(t, devices, free); err != nil {
		t.Error(err)
	}
	text := fmt.Sprintf("Devices:     %s: %d of %d free\n", w.driver(), free, devices)
	if r := tide(t, "", "", "pools", "describe", w.name); r.code != 0 || !strings.Contains(r.stdout, text) {
		t.Errorf("pools describe prints %+v, want %q", r, text)
	}
}

// assertPending checks that pools pending names the missing device of the copy that the scheduler
// found no node for.
func (w *deviceWorld) assertPending(t *testing.T) {
	t.Helper()
	const missing = "not enough free devices of class "
	framework.Eventually(t, "pools pending names the missing device", func() error {
		type group struct {
			Namespace string
			Pods      []string
			Pools     []struct {
				Answer  string
				AtMost  []string
				Refused []capacity.Count
			}
		}
		var groups []group
		answer(t, &groups, "", []string{"pools", "pending", w.name})
		i := slices.IndexFunc(groups, func(g group) bool { return g.Namespace == w.name })
		if i < 0 || len(groups[i].Pods) != 1 {
			return fmt.Errorf("%+v", groups)
		}
		in := groups[i].Pools[0]
		if in.Answer != "FitsAnEmptyNode" || len(in.AtMost) > 0 || !slices.ContainsFunc(in.Refused, func(r capacity.Count) bool { return strings.HasPrefix(r.What, missing) && r.Nodes == 2 }) {
			return fmt.Errorf("%+v", in)
		}
		return nil
	})
}

// assertShared checks the copies of a pod with a named claim: all of them run on the node of the
// claim's device.
func (w *deviceWorld) assertShared(t *testing.T) {
	t.Helper()
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "shared", Namespace: w.name}, Spec: w.request(func(*resourcev1.ExactDeviceRequest) {})}
	cluster.Apply(t, claim)
	spec := w.claiming(corev1.PodResourceClaim{Name: "gpu", ResourceClaimName: new("shared")})
	framework.Eventually(t, "pools fit knows that the copies must run on one node", func() error {
		if says := w.fitLike(t, spec); says.Copies != 4 || len(says.AtMost) > 0 {
			return fmt.Errorf("%+v", says)
		}
		return nil
	})
	w.copies(t, spec, 1)
	framework.Eventually(t, "the claim has a device", func() error {
		cluster.Refresh(t, claim)
		if claim.Status.Allocation == nil {
			return fmt.Errorf("%+v", claim.Status)
		}
		return nil
	})
	framework.Eventually(t, "pools fit has room for three more on its node", func() error {
		says := w.fitLike(t, spec)
		if says.Copies != 3 || len(says.AtMost) > 0 || !slices.ContainsFunc(says.Refused, func(r capacity.Count) bool {
			return r.What == "resource claim shared: its devices are elsewhere" && r.Nodes == 2
		}) {
			return fmt.Errorf("%+v", says)
		}
		return nil
	})
	w.assertFits(t, spec, 4)
	w.removeCopies(t)
}

// assertMissing checks that pools fit names a claim and a template that do not exist.
func (w *deviceWorld) assertMissing(t *testing.T) {
	t.Helper()
	for what, claim := range map[string]corev1.PodResourceClaim{
		"resource claim none does not exist":          {Name: "gpu", ResourceClaimName: new("none")},
		"resource claim template none does not exist": {Name: "gpu", ResourceClaimTemplateName: new("none")},
	} {
		says := w.fitLike(t, w.claiming(claim))
		if says.Copies != 0 || len(says.AtMost) > 0 || len(says.Refused) != 1 || says.Refused[0].What != what || says.Refused[0].Nodes != 3 {
			t.Errorf("%+v, want 3 nodes refused because %s", says, what)
		}
	}
}

// assertRights checks that a user who may not list all objects gets an upper bound, and learns which
// right is missing.
func (w *deviceWorld) assertRights(t *testing.T) {
	t.Helper()
	spec := w.claiming(corev1.PodResourceClaim{Name: "gpu", ResourceClaimTemplateName: new("any")})
	for name, c := range map[string]struct {
		readable []string
		copies   int
		missing  string
	}{
		"no-slices": {[]string{"deviceclasses", "resourceclaims", "resourceclaimtemplates", "devicetaintrules"}, 12, "devices (no right to list resourceslices)"},
		"no-claims": {[]string{"deviceclasses", "resourceslices", "resourceclaimtemplates", "devicetaintrules"}, 5, "devices (no right to list resourceclaims)"},
		"nothing":   {nil, 12, "devices (no right to list resourceclaimtemplates)"},
	} {
		kubeconfig := w.reader(t, name, c.readable)
		framework.Eventually(t, "a reader with "+name+" gets an upper bound", func() error {
			r := tide(t, manifest(t, w.pod(spec)), kubeconfig, "pools", "fit", w.name, "-n", w.name, "-f", "-")
			if want := fmt.Sprintf("at most %d ", c.copies); r.code != 0 || !strings.Contains(r.stdout, c.missing) || !strings.Contains(r.stdout, want) {
				return fmt.Errorf("%+v, want %q because of %s", r, want, c.missing)
			}
			return nil
		})
	}
	r := tide(t, "", w.reader(t, "blind", nil), "pools", "describe", w.name)
	if want := "not available: you may not list deviceclasses.resource.k8s.io and resourceslices.resource.k8s.io\n"; r.code != 0 || !strings.Contains(r.stdout, want) {
		t.Errorf("pools describe prints %+v, want %q", r, want)
	}
}

// reader creates an account that may list pools, nodes, pods and the given resources of the group
// resource.k8s.io, and returns its kubeconfig.
func (w *deviceWorld) reader(t *testing.T, name string, readable []string) (kubeconfig string) {
	t.Helper()
	verbs := []string{"get", "list"}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.name + "-" + name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"tidekeeper.dev"}, Resources: []string{"nodepools"}, Verbs: verbs}, {APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: verbs},
	}}
	if len(readable) > 0 {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{resourcev1.GroupName}, Resources: readable, Verbs: verbs})
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.name}}
	for _, o := range []client.Object{role, account, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: w.name}},
	}} {
		cluster.Apply(t, o)
	}
	return cluster.AccountKubeconfig(t, w.name, name)
}
