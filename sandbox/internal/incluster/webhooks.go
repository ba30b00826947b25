// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	kubectlutil "k8s.io/kubectl/pkg/util"

	"tidekeeper.dev/tidekeeper/sandbox/internal/pki"
	"tidekeeper.dev/tidekeeper/sandbox/internal/ports"
)

// defaultWebhookPort is controller-runtime's default port for webhooks.
const defaultWebhookPort = 9443

// webhooks makes the API server call the program instead of the Services that certain webhooks
// name.
type webhooks struct {
	client dynamic.Interface
	// services holds the Services whose webhooks the program serves, keyed by namespace and name. A
	// value is nil if the Service does not exist in the API server.
	services map[types.NamespacedName]*corev1.Service
	port     int32
	pod      *corev1.Pod
	ca       []byte
}

// findWebhooks finds the Services whose webhooks the program serves, without redirecting any
// webhook. It returns nil if the options name no Service and no webhook calls a Service that
// selects the Pod.
func findWebhooks(ctx context.Context, core kubernetes.Interface, o Options, pod *corev1.Pod) (*webhooks, error) {
	services := map[types.NamespacedName]*corev1.Service{}
	for _, name := range o.Services {
		services[name] = nil
	}
	list, err := core.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list Services: %w", err)
	}
	for i := range list.Items {
		s := &list.Items[i]
		name := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
		_, named := services[name]
		selects := s.Namespace == pod.Namespace && len(s.Spec.Selector) > 0 &&
			labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(pod.Labels))
		if named || selects {
			services[name] = s
		}
	}
	client, err := dynamic.NewForConfig(o.Config)
	if err != nil {
		return nil, err
	}
	w := &webhooks{client: client, services: services, port: o.WebhookPort}
	named, err := w.areNamed(ctx)
	if err != nil || len(o.Services) == 0 && !named {
		return nil, err
	}
	return w, nil
}

// ServeWebhooks creates a serving certificate for the Services that select a program's Pod. It
// writes the certificate to a new directory, and makes the API server trust it when calling
// webhooks. It returns these Services, or nil and creates no directory if no webhook calls any of
// them.
func ServeWebhooks(ctx context.Context, config *rest.Config, pod *corev1.Pod, dir string) (map[types.NamespacedName]bool, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	w, err := findWebhooks(ctx, client, Options{Config: config}, pod)
	if err != nil || w == nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if w.ca, err = writeServingCert(dir, w.services); err != nil {
		return nil, fmt.Errorf("make the serving certificate: %w", err)
	}
	served := map[types.NamespacedName]bool{}
	for name := range w.services {
		served[name] = true
	}
	err = eachWithWebhooks(ctx, w.client, func(resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
		return w.trust(ctx, resource, object.GetName())
	})
	if err != nil {
		return nil, err
	}
	return served, nil
}

// trust sets the CA bundle of the webhooks in an object to the CA of the program's serving
// certificate, if they call a Service whose webhooks the program serves.
func (w *webhooks) trust(ctx context.Context, resource schema.GroupVersionResource, name string) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object, err := w.client.Resource(resource).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		changed := false
		for _, hook := range webhooksOf(object) {
			config := hook.clientConfig()
			if service, _, _, found := serviceOf(config); !found {
				continue
			} else if _, ours := w.services[service]; ours {
				config["caBundle"], changed = base64.StdEncoding.EncodeToString(w.ca), true
			}
		}
		if changed {
			_, err = w.client.Resource(resource).Update(ctx, object, metav1.UpdateOptions{})
		}
		return err
	})
}

// areNamed reports whether any webhook in the cluster calls a Service whose webhooks the program
// serves.
func (w *webhooks) areNamed(ctx context.Context) (named bool, _ error) {
	err := eachWithWebhooks(ctx, w.client, func(_ schema.GroupVersionResource, object *unstructured.Unstructured) error {
		// The webhook may currently be redirected to another program, so look at its original
		// clientConfig.
		if _, err := restore(object, func(string) bool { return true }); err != nil {
			return err
		}
		for _, hook := range webhooksOf(object) {
			service, _, _, found := serviceOf(hook.clientConfig())
			_, ours := w.services[service]
			named = named || found && ours
		}
		return nil
	})
	return named, err
}

// redirectTo creates the program's serving certificate. It then redirects existing and new webhooks
// to the program, if they call a Service whose webhooks the program serves. The cleanups end the
// redirection.
func (w *webhooks) redirectTo(ctx context.Context, pod *corev1.Pod, certDir string, c *cleanups) error {
	w.pod = pod
	var err error
	if w.ca, err = writeServingCert(certDir, w.services); err != nil {
		return fmt.Errorf("make the serving certificate: %w", err)
	}
	c.add(w.restoreAll)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(w.client, 0)
	var synced []cache.InformerSynced
	for _, resource := range withWebhooks {
		handler, err := factory.ForResource(resource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { w.see(ctx, resource, object) },
			UpdateFunc: func(_, object any) { w.see(ctx, resource, object) },
		})
		if err != nil {
			return err
		}
		synced = append(synced, handler.HasSynced)
	}
	c.background(ctx, func(ctx context.Context) {
		factory.Start(ctx.Done())
		<-ctx.Done()
		factory.Shutdown()
	})
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return ctx.Err()
	}
	return nil
}

// writeServingCert creates a serving certificate for the given Services, and writes it to files
// with the same names as the keys of a TLS Secret. It returns the CA certificate, with which the
// API server verifies the serving certificate.
func writeServingCert(dir string, services map[types.NamespacedName]*corev1.Service) ([]byte, error) {
	authority, err := pki.NewAuthority("tidekeeper-sandbox-webhooks")
	if err != nil {
		return nil, err
	}
	names := []string{"localhost"}
	for s := range services {
		host := s.Name + "." + s.Namespace + ".svc"
		names = append(names, host, host+".cluster.local")
	}
	pair, err := authority.Server("webhooks", names, []net.IP{net.ParseIP(ports.Loopback)})
	if err != nil {
		return nil, err
	}
	return authority.Cert, errors.Join(pair.Write(dir, "tls"), os.WriteFile(filepath.Join(dir, "ca.crt"), authority.Cert, 0o600))
}

// target returns the address at which the program serves a Service's webhooks, and reports whether
// it serves them.
func (w *webhooks) target(name types.NamespacedName, port int32) (string, bool, error) {
	service, ours := w.services[name]
	if !ours {
		return "", false, nil
	}
	number := int32(defaultWebhookPort)
	switch {
	case w.port != 0:
		number = w.port
	case service != nil:
		var err error
		if number, err = kubectlutil.LookupContainerPortNumberByServicePort(*service, *w.pod, port); err != nil {
			return "", false, fmt.Errorf("%w: give the port of the program with --webhook-port", err)
		}
	}
	return net.JoinHostPort(ports.Loopback, strconv.Itoa(int(number))), true, nil
}

// podName returns the Pod's NAMESPACE/NAME, in the form that annotations contain.
func (w *webhooks) podName() string { return w.pod.Namespace + "/" + w.pod.Name }

// see handles a new or changed object that configures webhooks. If the program serves a webhook in
// the object, see redirects that webhook to the program. It restores webhooks that were redirected
// to a Pod that no longer exists.
func (w *webhooks) see(ctx context.Context, resource schema.GroupVersionResource, object any) {
	changed := object.(*unstructured.Unstructured).DeepCopy()
	// An earlier run that was killed could not restore the webhooks that it had redirected.
	restored, err := restore(changed, func(pod string) bool { return w.isGone(ctx, pod) })
	if err != nil {
		warn(fmt.Errorf("%s %s: %w", resource.Resource, changed.GetName(), err))
		return
	}
	redirected, err := redirect(changed, w.podName(), w.ca, w.target)
	if err == nil && (restored || redirected) {
		_, err = w.client.Resource(resource).Update(ctx, changed, metav1.UpdateOptions{})
	}
	// Ignore a conflict: the watch delivers the current object, and this method is called again.
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		warn(fmt.Errorf("%s %s: its webhooks do not reach the program: %w", resource.Resource, changed.GetName(), err))
	}
}

// isGone reports whether the Pod with the given NAMESPACE/NAME no longer exists. An earlier run may
// have redirected webhooks to such a Pod.
func (w *webhooks) isGone(ctx context.Context, pod string) bool {
	namespace, name, _ := strings.Cut(pod, "/")
	_, err := w.client.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

// restoreAll restores all webhooks that were redirected to the program.
func (w *webhooks) restoreAll(ctx context.Context) error {
	var errs []error
	for _, resource := range withWebhooks {
		list, err := w.client.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			errs = append(errs, fmt.Errorf("webhooks may be left as they are: %w", err))
			continue
		}
		for _, object := range list.Items {
			if _, found := object.GetAnnotations()[redirectedAnnotation]; !found {
				continue
			}
			if err := w.restore(ctx, resource, object.GetName()); err != nil {
				errs = append(errs, fmt.Errorf("%s %s: its webhooks are left as they are: %w", resource.Resource, object.GetName(), err))
			}
		}
	}
	return errors.Join(errs...)
}

func (w *webhooks) restore(ctx context.Context, resource schema.GroupVersionResource, name string) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object, err := w.client.Resource(resource).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		does, err := restore(object, func(pod string) bool { return pod == w.podName() })
		if err != nil || !does {
			return err
		}
		_, err = w.client.Resource(resource).Update(ctx, object, metav1.UpdateOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
