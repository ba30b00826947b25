// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podconfig

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func fromConfigMap(name string) corev1.EnvFromSource {
	return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

func keyOfConfigMap(name, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: "V", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}}}
}

func keyOfSecret(name, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: "V", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}}}
}

func volume(source corev1.VolumeSource) []corev1.Volume {
	return []corev1.Volume{{VolumeSource: source}}
}

func TestUses(t *testing.T) {
	local := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	yes := new(true)
	items := []corev1.KeyToPath{{Key: "b", Path: "x"}, {Key: "a", Path: "y"}}
	for _, tt := range []struct {
		name string
		spec corev1.PodSpec
		want string
	}{
		{name: "nothing", spec: corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{{Name: "V", Value: "v"}}}}}},
		{name: "all of a ConfigMap", spec: corev1.PodSpec{Containers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{fromConfigMap("web")}}}}, want: "C/web"},
		{
			name: "all of a Secret", want: "S/web",
			spec: corev1.PodSpec{Containers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local("web")}}}}}},
		},
		{
			name: "single keys", want: "C/web/a!,b! S/web/c!",
			spec: corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{keyOfConfigMap("web", "b"), keyOfConfigMap("web", "a"), keyOfSecret("web", "c")}}}},
		},
		{
			name: "a key of an object that is used as a whole, before and after", want: "C/web/*,a!",
			spec: corev1.PodSpec{
				InitContainers: []corev1.Container{{Env: []corev1.EnvVar{keyOfConfigMap("web", "a")}}},
				Containers:     []corev1.Container{{EnvFrom: []corev1.EnvFromSource{fromConfigMap("web")}, Env: []corev1.EnvVar{keyOfConfigMap("web", "a")}}},
			},
		},
		{name: "a volume", spec: corev1.PodSpec{Volumes: volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("web")}})}, want: "C/web"},
		{name: "files of it", spec: corev1.PodSpec{Volumes: volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "web", Items: items}})}, want: "S/web/a!,b!"},
		{
			name: "projected", want: "C/web/a!,b! S/web",
			spec: corev1.PodSpec{Volumes: volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: local("web"), Items: items}},
				{Secret: &corev1.SecretProjection{LocalObjectReference: local("web")}},
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}},
			}}})},
		},
		{
			name: "optional", want: "c/web c/whole s/db s/keys/k,l",
			spec: corev1.PodSpec{
				Containers: []corev1.Container{{
					EnvFrom: []corev1.EnvFromSource{
						{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local("web"), Optional: yes}},
						{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local("db"), Optional: yes}},
					},
					Env: []corev1.EnvVar{{Name: "V", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: local("keys"), Key: "k", Optional: yes}}}},
				}},
				Volumes: []corev1.Volume{
					{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "keys", Items: []corev1.KeyToPath{{Key: "l"}}, Optional: yes}}},
					{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("whole"), Optional: yes}}},
				},
			},
		},
		{
			name: "optional in one place and needed in another", want: "C/web/a,b! S/db/*,b!",
			spec: corev1.PodSpec{Containers: []corev1.Container{{
				EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local("db"), Optional: yes}}},
				Env: []corev1.EnvVar{
					{Name: "V", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: local("web"), Key: "a", Optional: yes}}},
					keyOfConfigMap("web", "b"), keyOfSecret("db", "b"),
				},
			}}},
		},
		{
			name: "names that no object has",
			spec: corev1.PodSpec{Containers: []corev1.Container{{
				EnvFrom: []corev1.EnvFromSource{fromConfigMap(""), fromConfigMap("a b"), fromConfigMap("a/b"), fromConfigMap("a\nb")},
				Env:     []corev1.EnvVar{keyOfConfigMap("web", "a,b"), keyOfConfigMap("web", "")},
			}}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Encode(&tt.spec); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			parsed, ok := Parse(tt.want)
			if diff := cmp.Diff(Uses(&tt.spec), append([]Use{}, parsed...)); diff != "" || !ok {
				t.Errorf("parsed (-uses +got):\n%s", diff)
			}
		})
	}
}

// TestUsesAreBounded checks that, for any pod template, the length of the encoded uses is bounded.
func TestUsesAreBounded(t *testing.T) {
	many := func(n int, env func(i int) corev1.EnvVar) *corev1.PodSpec {
		spec := &corev1.PodSpec{Containers: []corev1.Container{{}}}
		for i := range n {
			spec.Containers[0].Env = append(spec.Containers[0].Env, env(i))
		}
		return spec
	}
	for name, tt := range map[string]struct {
		spec *corev1.PodSpec
		ok   bool
	}{
		"as many as allowed": {many(MaxUses, func(i int) corev1.EnvVar { return keyOfConfigMap(fmt.Sprint("c", i), "k") }), true},
		"one more":           {many(MaxUses+1, func(i int) corev1.EnvVar { return keyOfConfigMap(fmt.Sprint("c", i), "k") }), false},
		"long keys":          {many(100, func(i int) corev1.EnvVar { return keyOfConfigMap("c", fmt.Sprint(i)+strings.Repeat("k", 200)) }), false},
	} {
		encoded := Encode(tt.spec)
		if _, ok := Parse(encoded); ok != tt.ok || len(encoded) > maxEncoded {
			t.Errorf("%s: %d bytes, readable: %v", name, len(encoded), ok)
		}
	}
}

// FuzzEncode checks that, for any pod template, parsing the encoded uses results in the original
// uses.
func FuzzEncode(f *testing.F) {
	f.Add("web", "a", "db", "b")
	f.Add("a b", "c/d", "", ",")
	f.Fuzz(func(t *testing.T, configMap, key, secret, other string) {
		spec := &corev1.PodSpec{Containers: []corev1.Container{{
			Env: []corev1.EnvVar{keyOfConfigMap(configMap, key), keyOfConfigMap(configMap, other), keyOfSecret(secret, key)},
		}}}
		parsed, ok := Parse(Encode(spec))
		if diff := cmp.Diff(Uses(spec), append([]Use{}, parsed...)); diff != "" || !ok {
			t.Errorf("parsed (-uses +got):\n%s", diff)
		}
	})
}
