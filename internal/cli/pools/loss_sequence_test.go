// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestStepsOfASequence(t *testing.T) {
	for _, tt := range []struct {
		then []string
		want [][]string
		err  string
	}{
		{nil, [][]string{{"a"}}, ""},
		{[]string{"c,b", "d"}, [][]string{{"a"}, {"b", "c"}, {"d"}}, ""},
		{[]string{"b,b"}, [][]string{{"a"}, {"b"}}, ""},
		{[]string{"b", "b"}, nil, "--then b: node b is lost already"},
		{[]string{"a"}, nil, "--then a: node a is lost already"},
		{[]string{""}, nil, `--then "": write names of nodes, separated by commas`},
		{[]string{"b,"}, nil, `--then "b,": write names of nodes, separated by commas`},
	} {
		o := sequenceOptions{then: tt.then}
		got, err := o.steps([]string{"a"})
		if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil) != (tt.err != "") || err != nil && err.Error() != tt.err {
			t.Errorf("%q: %v, %s", tt.then, err, diff)
		}
	}
}

// TestSurge compares the number of additional pods with the rules of the Deployment controller.
func TestSurge(t *testing.T) {
	rolling := func(surge intstr.IntOrString) appsv1.DeploymentStrategy {
		return appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge}}
	}
	for _, tt := range []struct {
		name     string
		replicas *int32
		strategy appsv1.DeploymentStrategy
		want     int
	}{
		{"the default, rounded up", new(int32(5)), appsv1.DeploymentStrategy{}, 2},
		{"the default of one replica", nil, appsv1.DeploymentStrategy{}, 1},
		{"a number", new(int32(5)), rolling(intstr.FromInt32(3)), 3},
		{"a percentage", new(int32(10)), rolling(intstr.FromString("100%")), 10},
		{"none", new(int32(5)), rolling(intstr.FromInt32(0)), 0},
		{"Recreate", new(int32(5)), appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}, 0},
		{"no replicas", new(int32(0)), rolling(intstr.FromInt32(3)), 0},
	} {
		if got := surgeOf(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: tt.replicas, Strategy: tt.strategy}}); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}
