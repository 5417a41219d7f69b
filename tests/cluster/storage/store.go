package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// The group of the custom resources, one for each call.
const group = "storage.example.com"

// The annotation with what the suite wrote, where the API server does not take it.
const writtenAnnotation = "storage.example.com/written"

// written is metadata that the API server determines, or that does not fit the object's key.
type written struct {
	Name       string    `json:"name"`
	Namespace  string    `json:"namespace"`
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation"`
}

// How many events wait for a reader; the watch cache holds as many or more.
const watchBuffer = 100

// store is a storage.Interface whose keys are paths of the HTTP API: /pods/NAMESPACE/NAME, or /pods/NAME.
type store struct {
	call
	writer, reader rest.Interface
	etcd           *clientv3.Client
	compacted      int64
	// The version at which the resource begins, which is 1 for the suite.
	firstVersion string
	// The continue tokens of the server, which are opaque, by those that the suite expects.
	tokens sync.Map
}

var _ storage.Interface = (*store)(nil)

func newStore(of call, writer, reader string, etcd *clientv3.Client) (*store, error) {
	writing, err := newClient(writer)
	if err != nil {
		return nil, err
	}
	reading, err := newClient(reader)
	if err != nil {
		return nil, err
	}
	s := &store{call: of, writer: writing, reader: reading, etcd: etcd}
	first := &example.PodList{}
	if err := s.apiServer().GetList(context.Background(), "/pods/", everything, first); err != nil {
		return nil, err
	}
	s.firstVersion = first.ResourceVersion
	return s, nil
}

// everything selects all objects under a key, as of now.
var everything = storage.ListOptions{Recursive: true, Predicate: storage.Everything}

// apiServer is the same store with reads from the API server.
func (s *store) apiServer() *store { return &store{call: s.call, writer: s.writer, reader: s.writer} }

func newClient(kubeconfig string) (rest.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return rest.UnversionedRESTClientFor(dynamic.ConfigFor(config))
}

// errNoRequest is the error of a key for which the HTTP API has no request.
var errNoRequest = errors.New("the HTTP API has no such request")

// split returns the namespace and the name of a key: both may be missing.
func (s *store) split(key string) (namespace, name string) {
	parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(key, "/pods"), "/"), "/")
	last := parts[len(parts)-1]
	if s.inCluster {
		return "", last
	}
	if len(parts) == 1 {
		return last, ""
	}
	return parts[0], last
}

func (s *store) path(namespace, name string) string {
	base := "/apis/" + group + "/v1"
	if namespace != "" {
		base += "/namespaces/" + namespace
	}
	return path.Join(base, s.plural(), name)
}

// objectPath is the path of one object.
func (s *store) objectPath(key string) string {
	namespace, name := s.split(key)
	if name == "" && !s.inCluster {
		// The suite asks for keys that no object of a namespace has.
		namespace, name = "default", namespace
	}
	return s.path(namespace, name)
}

func (s *store) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

func (s *store) Create(ctx context.Context, key string, obj, out runtime.Object, _ uint64) error {
	if obj.(*example.Pod).ResourceVersion != "" {
		return storage.ErrResourceVersionSetOnCreate
	}
	namespace, _ := s.split(key)
	created, err := s.write(ctx, s.writer.Post().AbsPath(s.path(namespace, "")), key, obj.(*example.Pod))
	if apierrors.IsAlreadyExists(err) {
		return storage.NewKeyExistsError(key, 0)
	}
	return set(out, created, err)
}

func (s *store) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	pod, err := s.get(ctx, s.reader, key, opts.ResourceVersion)
	if storage.IsNotFound(err) && opts.IgnoreNotFound {
		return set(out, &example.Pod{}, nil)
	}
	return set(out, pod, err)
}

func (s *store) get(ctx context.Context, client rest.Interface, key, version string) (*example.Pod, error) {
	request := client.Get().AbsPath(s.objectPath(key)).MaxRetries(0)
	if version != "" {
		request.Param("resourceVersion", version)
	}
	pod, err := decodeResult(request.Do(ctx))
	if apierrors.IsNotFound(err) {
		return nil, storage.NewKeyNotFoundError(key, 0)
	}
	return pod, err
}

func (s *store) Delete(
	ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, _ runtime.Object, _ storage.DeleteOptions,
) error {
	for {
		pod, err := s.get(ctx, s.writer, key, "")
		if err != nil {
			return err
		}
		if err := preconditions.Check(key, pod); err != nil {
			return err
		}
		if err := validate(ctx, pod); err != nil {
			return err
		}
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &pod.ResourceVersion}}
		options.Kind, options.APIVersion = "DeleteOptions", "v1"
		body, err := json.Marshal(options)
		if err != nil {
			return err
		}
		deleted := s.writer.Delete().AbsPath(s.objectPath(key)).SetHeader("Content-Type", "application/json").Body(body).Do(ctx)
		if apierrors.IsConflict(deleted.Error()) {
			continue
		}
		if apierrors.IsNotFound(deleted.Error()) {
			return storage.NewKeyNotFoundError(key, 0)
		}
		if deleted.Error() != nil {
			return deleted.Error()
		}
		// The answer is a Status without the version of the deletion: the watch cache of the API server has it.
		pod.ResourceVersion, err = s.versionOfDelete(ctx, key, pod.ResourceVersion)
		return set(out, pod, err)
	}
}

// versionOfDelete returns the version at which an object was deleted.
func (s *store) versionOfDelete(ctx context.Context, key, before string) (string, error) {
	events, err := s.apiServer().Watch(ctx, key, storage.ListOptions{ResourceVersion: before, Predicate: storage.Everything})
	if err != nil {
		return "", err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if event.Type == watch.Deleted {
			return event.Object.(*example.Pod).ResourceVersion, nil
		}
	}
	return "", fmt.Errorf("the API server sent no DELETED of %s", key)
}

func (s *store) GuaranteedUpdate(
	ctx context.Context, key string, out runtime.Object, ignoreNotFound bool, preconditions *storage.Preconditions,
	update storage.UpdateFunc, _ runtime.Object,
) error {
	for {
		pod, err := s.get(ctx, s.writer, key, "")
		isNew := storage.IsNotFound(err)
		if isNew && ignoreNotFound {
			pod, err = &example.Pod{}, nil
		}
		if err != nil {
			return err
		}
		if err := preconditions.Check(key, pod); err != nil {
			return err
		}
		version, _ := strconv.ParseUint(pod.ResourceVersion, 10, 64)
		updated, _, err := update(pod.DeepCopy(), storage.ResponseMeta{ResourceVersion: version})
		if err != nil {
			return err
		}
		next := updated.(*example.Pod).DeepCopy()
		next.ResourceVersion = pod.ResourceVersion
		if !isNew && equality.Semantic.DeepEqual(next, pod) {
			return set(out, pod, nil)
		}
		namespace, _ := s.split(key)
		request := s.writer.Put().AbsPath(s.objectPath(key))
		if isNew {
			request = s.writer.Post().AbsPath(s.path(namespace, ""))
		}
		stored, err := s.write(ctx, request, key, next)
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			continue
		}
		return set(out, stored, err)
	}
}

func (s *store) GetList(ctx context.Context, key string, opts storage.ListOptions, out runtime.Object) error {
	request, err := s.collection(key, opts)
	if err != nil {
		return err
	}
	answer, err := request.Do(ctx).Get()
	if err != nil {
		return err
	}
	object, ok := answer.(*unstructured.Unstructured)
	if !ok || !object.IsList() {
		return fmt.Errorf("a list is answered with %T", answer)
	}
	items, err := object.ToList()
	if err != nil {
		return err
	}
	list := out.(*example.PodList)
	*list = example.PodList{Items: []example.Pod{}}
	list.ResourceVersion = items.GetResourceVersion()
	list.RemainingItemCount = items.GetRemainingItemCount()
	if token := items.GetContinue(); token != "" {
		if list.Continue, err = expectedToken(key, items); err != nil {
			return err
		}
		s.tokens.Store(list.Continue, token)
	}
	for i := range items.Items {
		pod, err := decode(&items.Items[i])
		if err != nil {
			return err
		}
		list.Items = append(list.Items, *pod)
	}
	return nil
}

// expectedToken is the continue token that the suite expects of a page: the place after its last object.
func expectedToken(key string, page *unstructured.UnstructuredList) (string, error) {
	revision, err := strconv.ParseInt(page.GetResourceVersion(), 10, 64)
	if err != nil || len(page.Items) == 0 {
		return "", fmt.Errorf("a page of %d objects at version %q goes on", len(page.Items), page.GetResourceVersion())
	}
	last := page.Items[len(page.Items)-1]
	lastKey := path.Join("/pods", last.GetNamespace(), last.GetName())
	return storage.EncodeContinue(lastKey+"\x00", strings.TrimSuffix(key, "/")+"/", revision)
}

func (s *store) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	// For the suite all of them; HTTP has no watch of an object without a name.
	opts.Recursive = opts.Recursive || strings.HasSuffix(key, "/")
	if opts.ResourceVersion == "1" {
		opts.ResourceVersion = s.firstVersion
	}
	request, err := s.collection(key, opts)
	if err != nil {
		return nil, err
	}
	if opts.Predicate.AllowWatchBookmarks {
		request.Param("allowWatchBookmarks", "true")
	}
	if opts.SendInitialEvents != nil {
		request.Param("sendInitialEvents", strconv.FormatBool(*opts.SendInitialEvents))
		request.Param("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
	}
	// What kube-apiserver makes of timeoutSeconds is the deadline of the storage's context.
	if deadline, ok := ctx.Deadline(); ok {
		request.Param("timeoutSeconds", strconv.Itoa(int(math.Ceil(time.Until(deadline).Seconds()))))
	}
	request.Param("watch", "true")
	watching, cancel := context.WithCancel(ctx)
	events, err := request.Watch(watching)
	if err != nil && ctx.Err() == nil {
		cancel()
		return nil, err
	}
	decoded := &decodedWatch{cancel: cancel, result: make(chan watch.Event, watchBuffer)}
	if err != nil {
		// As the watch cache: nothing follows, which is no error.
		close(decoded.result)
		return decoded, nil
	}
	go decoded.follow(watching, events)
	return decoded, nil
}

// collection is the request for the objects under a key.
func (s *store) collection(key string, opts storage.ListOptions) (*rest.Request, error) {
	namespace, name := s.split(key)
	if opts.Recursive && name != "" || !opts.Recursive && strings.HasSuffix(key, "/") {
		return nil, fmt.Errorf("%w: %s, recursive: %t", errNoRequest, key, opts.Recursive)
	}
	selector := opts.Predicate.Field
	if !opts.Recursive {
		if name == "" {
			namespace, name = "default", namespace
		}
		if _, found := selector.RequiresExactMatch("metadata.name"); !found {
			selector = fields.AndSelectors(selector, fields.OneTermEqualSelector("metadata.name", name))
		}
	}
	if s.noCache && opts.ResourceVersion == "0" {
		opts.ResourceVersion = ""
	}
	token := opts.Predicate.Continue
	if known, found := s.tokens.Load(token); found {
		token = known.(string)
	}
	request := s.reader.Get().AbsPath(s.path(namespace, "")).MaxRetries(0)
	params := map[string]string{
		"resourceVersion":      opts.ResourceVersion,
		"resourceVersionMatch": string(opts.ResourceVersionMatch),
		"continue":             token,
		"fieldSelector":        selector.String(),
		"labelSelector":        opts.Predicate.Label.String(),
	}
	if opts.Predicate.Limit > 0 {
		params["limit"] = strconv.FormatInt(opts.Predicate.Limit, 10)
	}
	for name, value := range params {
		if value != "" {
			request.Param(name, value)
		}
	}
	return request, nil
}

// decodedWatch has the events of a watch as the suite knows them.
type decodedWatch struct {
	cancel context.CancelFunc
	result chan watch.Event
}

func (w *decodedWatch) Stop()                          { w.cancel() }
func (w *decodedWatch) ResultChan() <-chan watch.Event { return w.result }

func (w *decodedWatch) follow(ctx context.Context, events watch.Interface) {
	defer close(w.result)
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event, ok := <-events.ResultChan():
			// A connection that is closed by Stop is no error of the server.
			if !ok || ctx.Err() != nil {
				return
			}
			if object, ok := event.Object.(*unstructured.Unstructured); ok {
				pod, err := decode(object)
				if err != nil {
					status := apierrors.NewInternalError(err).Status()
					event = watch.Event{Type: watch.Error, Object: &status}
				} else {
					event.Object = pod
				}
			}
			select {
			case w.result <- event:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (s *store) Stats(context.Context) (storage.Stats, error) { return storage.Stats{}, errNoRequest }

func (s *store) ReadinessCheck() error { return nil }

func (s *store) RequestWatchProgress(context.Context) error { return errNoRequest }

// GetCurrentResourceVersion is the version of a consistent list.
func (s *store) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	list := &example.PodList{}
	if err := s.GetList(ctx, "/pods/", everything, list); err != nil {
		return 0, err
	}
	return strconv.ParseUint(list.ResourceVersion, 10, 64)
}

func (s *store) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil }

func (s *store) CompactRevision() int64 { return s.compacted }

func (s *store) write(ctx context.Context, request *rest.Request, key string, pod *example.Pod) (*example.Pod, error) {
	body, err := s.encode(key, pod)
	if err != nil {
		return nil, err
	}
	return decodeResult(request.SetHeader("Content-Type", "application/json").Body(body).Do(ctx))
}

func set(out runtime.Object, pod *example.Pod, err error) error {
	if err == nil {
		*out.(*example.Pod) = *pod
	}
	return err
}

// kind and plural are the names of the custom resource.
func (c call) kind() string   { return c.name + "Pod" }
func (c call) plural() string { return strings.ToLower(c.kind()) + "s" }

// encode returns an object as the API server takes it.
func (s *store) encode(key string, pod *example.Pod) ([]byte, error) {
	pod = pod.DeepCopy()
	namespace, name := s.split(key)
	of := written{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, Generation: pod.Generation}
	if of != (written{Name: name, Namespace: namespace}) {
		text, err := json.Marshal(of)
		if err != nil {
			return nil, err
		}
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, writtenAnnotation, string(text))
	}
	pod.Name, pod.Namespace, pod.UID, pod.Generation = name, namespace, "", 0
	return json.Marshal(map[string]any{
		"apiVersion": group + "/v1",
		"kind":       s.kind(),
		"metadata":   pod.ObjectMeta,
		"spec":       map[string]any{"nodeName": pod.Spec.NodeName},
		"status":     map[string]any{"phase": pod.Status.Phase},
	})
}

func decodeResult(result rest.Result) (*example.Pod, error) {
	answer, err := result.Get()
	if err != nil {
		return nil, err
	}
	object, ok := answer.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("an object is answered with %T", answer)
	}
	return decode(object)
}

// decode returns an object as the suite wrote it: without what the API server gives to each object.
func decode(object *unstructured.Unstructured) (*example.Pod, error) {
	text, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var stored struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			NodeName string `json:"nodeName"`
		} `json:"spec"`
		Status struct {
			Phase example.PodPhase `json:"phase"`
		} `json:"status"`
	}
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, err
	}
	pod := &example.Pod{ObjectMeta: stored.Metadata}
	pod.Spec.NodeName, pod.Status.Phase = stored.Spec.NodeName, stored.Status.Phase
	pod.CreationTimestamp, pod.ManagedFields = metav1.Time{}, nil
	of := written{Name: pod.Name, Namespace: pod.Namespace}
	if text, found := pod.Annotations[writtenAnnotation]; found {
		if err := json.Unmarshal([]byte(text), &of); err != nil {
			return nil, err
		}
	}
	pod.Name, pod.Namespace, pod.UID, pod.Generation = of.Name, of.Namespace, of.UID, of.Generation
	delete(pod.Annotations, writtenAnnotation)
	if len(pod.Annotations) == 0 {
		pod.Annotations = nil
	}
	return pod, nil
}
