// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/kube/pages"
	"tidekeeper.dev/tidekeeper/internal/migrate"
)

// read reads the objects to convert, from files or from the cluster. complete is false if the
// result may lack some Deployments.
func (o *options) read(ctx context.Context) (objects []migrate.Object, complete bool, err error) {
	if o.fromCluster {
		return o.readCluster(ctx)
	}
	objects, err = o.readFiles()
	return objects, false, err
}

func (o *options) readFiles() ([]migrate.Object, error) {
	var objects []migrate.Object
	err := cmdutil.ReadManifests(o.In, resource.FilenameOptions{Filenames: o.files, Recursive: o.recursive}, func(found *unstructured.Unstructured, source string) {
		objects = append(objects, migrate.Object{Unstructured: found, Source: source})
	})
	if err != nil {
		return nil, &cmdutil.CodedError{Code: cmdutil.ExitError, Err: fmt.Errorf("nothing is converted: %w", err)}
	}
	return objects, nil
}

// partialError is the error of a command that converted only some of the objects, because the user
// is not allowed to read the others.
type partialError struct{ reasons error }

func (p *partialError) Error() string {
	return "not all could be read: " + strings.ReplaceAll(p.reasons.Error(), "\n", "; ")
}
func (p *partialError) Unwrap() error { return p.reasons }

// readCluster reads the objects to convert from the cluster. If the user is not allowed to read
// some of the kinds, it returns the other objects and a partialError. complete is false if the user
// is not allowed to read Deployments.
func (o *options) readCluster(ctx context.Context) (objects []migrate.Object, complete bool, err error) {
	c, err := o.Kubeconfig.Client()
	if err != nil {
		return nil, false, err
	}
	var refused error
	complete = true
	for _, kind := range []schema.GroupVersionKind{migrate.NodePoolKind, migrate.EruKind, migrate.DeploymentKind} {
		// Read only the metadata of Deployments, because the conversion does not use their spec or
		// status.
		items, err := list(ctx, c, kind, *o.Kubeconfig.Flags.Namespace, kind == migrate.DeploymentKind)
		switch {
		case err == nil:
			objects = append(objects, items...)
		case apierrors.IsNotFound(err):
			fmt.Fprintf(o.Console.ErrOut, "note: the cluster does not know the kind %s of %s: nothing to convert\n", kind.Kind, kind.GroupVersion())
		case apierrors.IsForbidden(err):
			complete = complete && kind != migrate.DeploymentKind
			refused = errors.Join(refused, err)
		default:
			return nil, false, err
		}
	}
	if refused != nil {
		return objects, complete, &partialError{refused}
	}
	return objects, complete, nil
}

func list(ctx context.Context, c client.Client, kind schema.GroupVersionKind, namespace string, metadata bool) ([]migrate.Object, error) {
	var in []client.ListOption
	if kind != migrate.NodePoolKind {
		in = append(in, client.InNamespace(namespace))
	}
	kind.Kind += "List"
	var objects []migrate.Object
	if metadata {
		var wrong error
		err := pages.Each(ctx, c, func() *metav1.PartialObjectMetadataList {
			page := &metav1.PartialObjectMetadataList{}
			page.SetGroupVersionKind(kind)
			return page
		}, func(page *metav1.PartialObjectMetadataList) {
			for i := range page.Items {
				// Managed fields are not used, and would take most of the memory.
				page.Items[i].ManagedFields = nil
				delete(page.Items[i].Annotations, corev1.LastAppliedConfigAnnotation)
				fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&page.Items[i])
				wrong = errors.Join(wrong, err)
				o := migrate.Object{Unstructured: &unstructured.Unstructured{Object: fields}}
				o.SetGroupVersionKind(migrate.DeploymentKind)
				objects = append(objects, o)
			}
		}, in...)
		return objects, errors.Join(err, wrong)
	}
	err := pages.Each(ctx, c, func() *unstructured.UnstructuredList {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(kind)
		return page
	}, func(page *unstructured.UnstructuredList) {
		for i := range page.Items {
			objects = append(objects, migrate.Object{Unstructured: &page.Items[i]})
		}
	}, in...)
	return objects, err
}
