// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"tidekeeper.dev/tidekeeper/sandbox/internal/kubelet"
)

// TestCleanups checks that all cleanups run in reverse order even if one of them fails, and that
// they wait for background functions.
func TestCleanups(t *testing.T) {
	var order []string
	var c cleanups
	add := func(name string, err error) {
		c.add(func(context.Context) error { order = append(order, name); return err })
	}
	add("first", nil)
	c.background(t.Context(), func(ctx context.Context) { <-ctx.Done(); order = append(order, "background") })
	add("fails", errors.New("it is left"))
	add("last", nil)
	c.run()
	if want := []string{"last", "fails", "background", "first"}; !slices.Equal(order, want) {
		t.Errorf("cleaned up %q, want %q", order, want)
	}
	if c.run(); len(order) != 4 {
		t.Errorf("cleaned up twice: %q", order)
	}
}

// TestVariables checks that a program gets the same environment variables that a kubelet would give
// to the container.
func TestVariables(t *testing.T) {
	v := variables{
		client: fake.NewSimpleClientset(
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "config"}, Data: map[string]string{"level": "debug", "host": "db"}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "secret"}, Data: map[string][]byte{"password": []byte("x")}},
		),
		pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "op-1"},
			Spec:       corev1.PodSpec{NodeName: "node-1", ServiceAccountName: "op"}, Status: corev1.PodStatus{PodIP: "10.0.0.1", HostIP: "10.0.0.2"},
		},
	}
	configMap := func(name, key string, optional *bool) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: optional}}
	}
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	from := func(prefix, name string, optional *bool) corev1.EnvFromSource {
		return corev1.EnvFromSource{Prefix: prefix, ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: optional}}
	}
	for _, tc := range []struct {
		name string
		corev1.Container
		want map[string]string
		err  string
	}{
		{"a value refers to the variables before it", corev1.Container{
			EnvFrom: []corev1.EnvFromSource{from("C_", "config", nil)},
			Env:     []corev1.EnvVar{{Name: "A", Value: "$(C_host):$(B)"}, {Name: "B", Value: "1"}},
		}, map[string]string{"C_level": "debug", "C_host": "db", "A": "db:$(B)", "B": "1"}, ""},
		{"fields of the Pod", corev1.Container{Env: []corev1.EnvVar{
			{Name: "NAME", ValueFrom: field("metadata.name")}, {Name: "NODE", ValueFrom: field("spec.nodeName")},
			{Name: "ACCOUNT", ValueFrom: field("spec.serviceAccountName")}, {Name: "IP", ValueFrom: field("status.podIP")}, {Name: "HOST", ValueFrom: field("status.hostIP")},
		}}, map[string]string{"NAME": "op-1", "NODE": "node-1", "ACCOUNT": "op", "IP": "10.0.0.1", "HOST": "10.0.0.2"}, ""},
		{"keys", corev1.Container{Env: []corev1.EnvVar{
			{Name: "LEVEL", ValueFrom: configMap("config", "level", nil)},
			{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "secret"}, Key: "password"}}},
		}}, map[string]string{"LEVEL": "debug", "PASSWORD": "x"}, ""},
		{"optional values that are missing", corev1.Container{
			EnvFrom: []corev1.EnvFromSource{from("", "absent", new(true))},
			Env:     []corev1.EnvVar{{Name: "A", ValueFrom: configMap("absent", "a", new(true))}, {Name: "B", ValueFrom: configMap("config", "absent", new(true))}},
		}, map[string]string{}, ""},
		{"a missing key", corev1.Container{Name: "main", Env: []corev1.EnvVar{{Name: "A", ValueFrom: configMap("config", "absent", nil)}}}, nil,
			"env A of the container main: the ConfigMap config in the namespace shop has no key absent"},
		{"a missing object", corev1.Container{Name: "main", EnvFrom: []corev1.EnvFromSource{from("", "absent", nil)}}, nil,
			"envFrom of the container main: there is no ConfigMap absent in the namespace shop: apply it first"},
		{"an unknown source", corev1.Container{Env: []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{}}}}, nil, "is not supported"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := v.of(t.Context(), &tc.Container)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if tc.err == "" && !maps.Equal(got, tc.want) {
				t.Errorf("variables %v, want %v", got, tc.want)
			}
		})
	}
}

// TestPodOfProgram checks that a program's Pod is based on its Deployment if there is one, and that
// the simulated kubelet reports the Pod as ready immediately.
func TestPodOfProgram(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "operator"}}
	deployment.Spec.Template.Labels = map[string]string{"app": "operator"}
	deployment.Spec.Template.Annotations = map[string]string{kubelet.Prefix + "behavior": "crash-loop", "mine": "1"}
	deployment.Spec.Template.Spec = corev1.PodSpec{
		Containers: []corev1.Container{{Name: "manager"}}, InitContainers: []corev1.Container{{Name: "init"}},
		ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "x"}},
	}
	pod := podOfDeployment(deployment)
	asRunning(pod)
	if pod.Namespace != "shop" || pod.GenerateName != "operator-" || pod.Labels["app"] != "operator" || pod.Spec.ServiceAccountName != "default" {
		t.Errorf("the Pod of the Deployment: %+v", pod)
	}
	if pod.Annotations["mine"] != "1" || pod.Annotations[kubelet.Prefix+"behavior"] != "" || len(pod.Spec.InitContainers)+len(pod.Spec.ReadinessGates) != 0 {
		t.Errorf("the Pod would not be ready at once: %+v", pod)
	}
	if deployment.Spec.Template.Annotations[kubelet.Prefix+"behavior"] == "" {
		t.Error("the Deployment was changed")
	}
	for _, tc := range []struct {
		program, account string
		want             string
	}{
		{"/bin/My_Operator.test", "shop/op", "shop/my-operator-test-/op"},
		{"./--", "", "default/program-/"},
		{strings.Repeat("x", 90), "", "default/" + strings.Repeat("x", 50) + "-/"},
	} {
		namespace, name, _ := strings.Cut(tc.account, "/")
		p := standalonePod(tc.program, types.NamespacedName{Namespace: namespace, Name: name})
		if got := p.Namespace + "/" + p.GenerateName + "/" + p.Spec.ServiceAccountName; got != tc.want {
			t.Errorf("%s: %s, want %s", tc.program, got, tc.want)
		}
	}
	if _, err := readyNode([]corev1.Node{{}}); err == nil {
		t.Error("a node that is not ready has the program")
	}
}

// TestCommandOfProgram checks that the container's arguments are used unless the user passes
// arguments, and that the user's environment variables do not direct the program to another API
// server.
func TestCommandOfProgram(t *testing.T) {
	t.Setenv("KUBECONFIG", "/prod")
	o := Options{Program: []string{"./op"}, Environment: []string{"HTTPS_PROXY=here"}, Config: &rest.Config{Host: "https://127.0.0.1:6443"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "op-1"}, Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "main", Command: []string{"/manager", "--level=$(LEVEL)"}, Args: []string{"--leader-elect"}},
	}}}
	cmd, err := o.command(pod, map[string]string{"LEVEL": "debug"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"./op", "--level=debug", "--leader-elect"}; !slices.Equal(cmd.Args, want) {
		t.Errorf("arguments %q, want %q", cmd.Args, want)
	}
	for _, want := range []string{"HOSTNAME=op-1", "LEVEL=debug", "KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=6443", "HTTPS_PROXY=here"} {
		if !slices.Contains(cmd.Env, want) {
			t.Errorf("the program has no %s", want)
		}
	}
	if slices.Contains(cmd.Env, "KUBECONFIG=/prod") {
		t.Error("the program has the KUBECONFIG of the user")
	}
	o.Program = append(o.Program, "--own")
	if cmd, err = o.command(pod, nil); err != nil || !slices.Equal(cmd.Args, []string{"./op", "--own"}) {
		t.Errorf("with arguments of the user: %v, %v", cmd.Args, err)
	}
}
