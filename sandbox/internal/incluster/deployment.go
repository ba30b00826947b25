// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

// Prefixes in the value of the flag --from, which refer to Deployments and StatefulSets in the API
// server.
const (
	deploymentPrefix  = "deployment/"
	statefulSetPrefix = "statefulset/"
)

// findDeployment returns the Deployment whose container the program replaces, from the API server
// or from a file. For a StatefulSet in the API server, it returns a Deployment with the same Pod
// template and without a UID.
func findDeployment(ctx context.Context, client kubernetes.Interface, from string) (*appsv1.Deployment, error) {
	if full, is := strings.CutPrefix(from, statefulSetPrefix); is {
		return fromStatefulSet(ctx, client, full)
	}
	full, inServer := strings.CutPrefix(from, deploymentPrefix)
	if !inServer {
		data, err := os.ReadFile(from)
		if err != nil {
			return nil, fmt.Errorf("--from %s: want %sNAMESPACE/NAME or the file of a manifest: %w", from, deploymentPrefix, errors.Unwrap(err))
		}
		d, err := parseDeployment(data)
		if err != nil {
			return nil, fmt.Errorf("--from %s: %w", from, err)
		}
		return d, nil
	}
	namespace, name, _ := strings.Cut(full, "/")
	if namespace == "" || name == "" {
		return nil, fmt.Errorf("--from %s: want %sNAMESPACE/NAME", from, deploymentPrefix)
	}
	d, err := client.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("--from %s: there is no such Deployment: apply it first, or give the file of its manifest", from)
	}
	return d, err
}

func fromStatefulSet(ctx context.Context, client kubernetes.Interface, full string) (*appsv1.Deployment, error) {
	namespace, name, _ := strings.Cut(full, "/")
	if namespace == "" || name == "" {
		return nil, fmt.Errorf("--from %s%s: want %sNAMESPACE/NAME", statefulSetPrefix, full, statefulSetPrefix)
	}
	set, err := client.AppsV1().StatefulSets(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("--from %s%s: there is no such StatefulSet: apply it first", statefulSetPrefix, full)
	}
	if err != nil {
		return nil, err
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name},
		Spec:       appsv1.DeploymentSpec{Template: set.Spec.Template},
	}, nil
}

// parseDeployment returns the only Deployment in a manifest.
func parseDeployment(manifest []byte) (*appsv1.Deployment, error) {
	var found []*appsv1.Deployment
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		var raw runtime.RawExtension
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(raw.Raw, &kind); err != nil {
			return nil, err
		}
		if kind.APIVersion != appsv1.SchemeGroupVersion.String() || kind.Kind != "Deployment" {
			continue
		}
		d := &appsv1.Deployment{}
		if err := yaml.UnmarshalStrict(raw.Raw, d); err != nil {
			return nil, err
		}
		found = append(found, d)
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("want one Deployment in it, and there are %d", len(found))
	}
	d := found[0]
	if d.Namespace == "" {
		d.Namespace = metav1.NamespaceDefault
	}
	if len(d.Spec.Template.Spec.Containers) == 0 {
		return nil, fmt.Errorf("the Deployment %s has no container", d.Name)
	}
	return d, nil
}
