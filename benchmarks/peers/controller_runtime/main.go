// The contestant controller-runtime of `deno task bench --controllers`: the controller of
// examples/widget_controller.ts, as kubebuilder's users write one. It takes its connection from KUBECONFIG.
//
// It prints a line of JSON when it has reconciled so many different Widgets as its argument says, and runs until it is
// killed.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const finalizer = "example.com/widget"

// WidgetReconciler gives each Widget a ConfigMap of its color, a status, and a finalizer that cleans up.
type WidgetReconciler struct {
	client.Client
	Scheme   *runtime.Scheme
	Recorder events.EventRecorder
}

// Reconcile brings one Widget to what it says.
func (r *WidgetReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var widget Widget
	if err := r.Get(ctx, request.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: "widget-" + widget.Name},
	}
	if !widget.DeletionTimestamp.IsZero() {
		if !controllerutil.ContainsFinalizer(&widget, finalizer) {
			return ctrl.Result{}, nil
		}
		if err := r.Delete(ctx, configMap); err != nil && !apierrors.IsNotFound(err) {
			return ctrl.Result{}, err
		}
		controllerutil.RemoveFinalizer(&widget, finalizer)
		return ctrl.Result{}, r.Update(ctx, &widget)
	}
	if controllerutil.AddFinalizer(&widget, finalizer) {
		if err := r.Update(ctx, &widget); err != nil {
			return ctrl.Result{}, err
		}
	}
	color := widget.Spec.Color
	if color == "" {
		color = "none"
	}
	done, err := controllerutil.CreateOrUpdate(ctx, r.Client, configMap, func() error {
		configMap.Data = map[string]string{"color": color, "size": strconv.FormatInt(widget.Spec.Size, 10)}
		return controllerutil.SetControllerReference(&widget, configMap, r.Scheme)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if done != controllerutil.OperationResultNone {
		r.Recorder.Eventf(&widget, nil, corev1.EventTypeNormal, "Configured", "Configure", "color %s", color)
	}
	status := WidgetStatus{Ready: true, ObservedGeneration: widget.Generation, Message: color}
	if widget.Status == status {
		return ctrl.Result{}, nil
	}
	before := widget.DeepCopy()
	widget.Status = status
	return ctrl.Result{}, r.Status().Patch(ctx, &widget, client.MergeFrom(before))
}

// counted prints a line when so many different Widgets were reconciled.
type counted struct {
	*WidgetReconciler
	expected int
	mutex    sync.Mutex
	seen     map[string]struct{}
}

func (c *counted) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	result, err := c.WidgetReconciler.Reconcile(ctx, request)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	before := len(c.seen)
	c.seen[request.String()] = struct{}{}
	if before < c.expected && len(c.seen) == c.expected {
		fmt.Printf("{\"reconciled\":%d,\"pid\":%d}\n", c.expected, os.Getpid())
	}
	return result, err
}

func main() {
	expected, err := strconv.Atoi(os.Args[1])
	utilruntime.Must(err)
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(addToScheme(scheme))
	ctrl.SetLogger(zap.New())

	// Its requests have no limit on the client's side, which is the default of GetConfig.
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	utilruntime.Must(err)
	reconciler := &WidgetReconciler{
		Client:   manager.GetClient(),
		Scheme:   scheme,
		Recorder: manager.GetEventRecorder("widgets"),
	}
	utilruntime.Must(ctrl.NewControllerManagedBy(manager).
		For(&Widget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(&counted{WidgetReconciler: reconciler, expected: expected, seen: map[string]struct{}{}}))
	utilruntime.Must(manager.Start(ctrl.SetupSignalHandler()))
}
