"""Loading a plugin as Trino's PluginManager does, and creating its connector."""

from __future__ import annotations

import zipfile
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.trino.host.handle_json import HandleJson
from rowmerge_nb.connectors.trino.host.java_errors import configuration_mistakes
from rowmerge_nb.connectors.trino.host.jpype_library import jpype
from rowmerge_nb.connectors.trino.host.jvm import java_class, java_list, java_text
from rowmerge_nb.connectors.trino.host.spi_versions import spi_version
from rowmerge_nb.connectors.trino.host.versions import catalog_handle
from rowmerge_nb.connectors.trino.jar_names import other_release_hint, spi_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rowmerge_nb.connectors.trino.host.jvm import JavaObject
    from rowmerge_nb.connectors.trino.host.versions import SpiVersion

_PLUGIN: Final = "io.trino.spi.Plugin"
_SERVICE_FILE: Final = f"META-INF/services/{_PLUGIN}"
_FACTORY: Final = "io.trino.spi.connector.ConnectorFactory"
_ABSTRACT: Final = 0x0400


@dataclass(frozen=True)
class PluginSettings:
    """What a host process is started with."""

    java_home: str
    engine: str
    plugin: str | Sequence[str]
    connector: str | None = None
    plugin_class: str | None = None
    catalog: str = "catalog"
    properties: Mapping[str, str] = field(default_factory=dict)
    java_options: Sequence[str] = ()


@dataclass(frozen=True)
class LoadedPlugin:
    settings: PluginSettings
    version: SpiVersion
    plugin_class: str
    factory: str
    class_loader: JavaObject
    connector: JavaObject
    types: JavaObject
    handles: HandleJson

    @contextmanager
    def context(self) -> Iterator[None]:
        with _class_loader(self.class_loader):
            yield


def load_plugin(settings: PluginSettings) -> LoadedPlugin:
    paths = plugin_paths(settings.plugin)
    urls = java_list([java_class("java.io.File")(java_text(str(p))).toURI().toURL() for p in paths])
    class_loader = java_class("io.trino.server.PluginManager").createClassLoader(
        java_text(settings.connector or "plugin"), urls
    )
    with _class_loader(class_loader):
        plugin = _load(class_loader, paths, settings)
        if plugin is None:
            factory = _lone_factory(class_loader, paths, settings)
        else:
            factory = _find_factory(plugin, settings.connector)
        registry, types = _types()
        _add_types(registry, [] if plugin is None else [plugin])
        version = spi_version(settings.engine)
        settings = replace(settings, properties=version.catalog_properties(settings.properties))
        class_loaders = [class_loader]
        if hasattr(class_loader, "duplicate"):
            # Plugins of older versions may load the classes of each catalog anew.
            class_loaders.append(class_loader.duplicate(catalog_handle(settings.catalog)))
        context = _connector_context(version, types, class_loaders[-1])
        try:
            connector = _create(factory, settings, context)
        except java_class("java.lang.RuntimeException") as error:
            # A server has the types of all its plugins: PostgreSQL's needs those of geospatial,
            # whose jar is among its own.
            others = _other_plugins(class_loader, paths, plugin) if _lacks_type(error) else []
            if not _add_types(registry, others):
                raise
            connector = _create(factory, settings, context)
        return LoadedPlugin(
            settings=settings,
            version=version,
            plugin_class=str((plugin or factory).getClass().getName()),
            factory=str(factory.getName()),
            class_loader=class_loaders[-1],
            connector=connector,
            types=types,
            handles=HandleJson(class_loaders, types),
        )


def plugin_paths(plugin: str | Sequence[str]) -> list[Path]:
    paths: list[Path] = []
    for path in [Path(plugin)] if isinstance(plugin, str) else [Path(each) for each in plugin]:
        if path.is_file():
            paths.append(path)
            continue
        jars = sorted(path.glob("*.jar"))
        if not jars and not next(path.rglob("*.class"), None):
            raise ConnectorError(
                f"There are no jars and no classes of a plugin in {path}",
                code="CONFIGURATION_UNAVAILABLE",
                hint="Name the folder with the plugin's jars, such as plugin/iceberg.",
            )
        paths += jars or [path]
    return paths


def implementing_classes(path: Path, interface: str = _PLUGIN) -> Iterator[str]:
    """Yield the names of classes in a jar or folder that mention an interface."""
    # The name among the constants of a class file, after its length.
    constant = len(interface).to_bytes(2, "big") + interface.replace(".", "/").encode()
    if path.is_dir():
        for file in sorted(path.rglob("*.class")):
            if constant in file.read_bytes():
                yield ".".join(file.relative_to(path).with_suffix("").parts)
        return
    try:
        with zipfile.ZipFile(path) as jar:
            for name in jar.namelist():
                if name.endswith(".class") and constant in jar.read(name):
                    yield name.removesuffix(".class").replace("/", ".")
    except (zipfile.BadZipFile, OSError) as error:
        raise ConnectorError(
            f"The jar {path} is unreadable: {error}",
            code="CONFIGURATION_UNAVAILABLE",
            hint="Build or download it again.",
        ) from error


def release_hint(settings: PluginSettings) -> str | None:
    """Return which jar of a plugin is of another release than the engine, if one is."""
    paths = jars_by_likeness(
        plugin_paths(settings.plugin), settings.connector or _folder(settings).name
    )
    names = [path.name for path in paths]
    jars = [path.name for path in Path(settings.engine).glob("*.jar")]
    return other_release_hint(names, spi_number(jars))


def jars_by_likeness(paths: Sequence[Path], plugin_name: str) -> list[Path]:
    """Return a plugin's paths, those first whose names have the name of the plugin.

    >>> [str(path) for path in jars_by_likeness([Path("asm.jar"), Path("trino-hive-483.jar")], "hive")]
    ['trino-hive-483.jar', 'asm.jar']
    """

    def rank(path: Path) -> int:
        name = path.name
        return 0 if name.startswith(f"trino-{plugin_name}") else 1 if plugin_name in name else 2

    return sorted(paths, key=rank)


def _load(
    class_loader: JavaObject, paths: Sequence[Path], settings: PluginSettings
) -> JavaObject | None:
    if settings.plugin_class:
        return _instance(class_loader, settings.plugin_class)
    services = java_class("java.util.ServiceLoader").load(java_class(_PLUGIN).class_, class_loader)
    plugins = list(services)
    if plugins:
        return plugins[0]
    for path in jars_by_likeness(paths, settings.connector or _folder(settings).name):
        for name in implementing_classes(path):
            if _is_plugin(class_loader, name):
                return _instance(class_loader, name)
    return None


def _lone_factory(
    class_loader: JavaObject, paths: Sequence[Path], settings: PluginSettings
) -> JavaObject:
    """Return the connector factory of jars without a plugin: older jars of Hive are a library, whose
    plugin is a class of a server.
    """
    folder, connector = _folder(settings), settings.connector or ""
    for path in jars_by_likeness(paths, connector or folder.name)[:1]:
        for name in implementing_classes(path, _FACTORY):
            candidate = _constructible(class_loader, name, _FACTORY)
            if candidate is None:
                continue
            factory = java_class(_FACTORY) @ candidate(connector)
            if str(factory.getName()) == connector:
                return factory
    raise ConnectorError(
        f"No class in {folder} implements {_PLUGIN}",
        code="CONFIGURATION_UNAVAILABLE",
        hint=f"Name the class with plugin_class, or add {_SERVICE_FILE} to the jar.",
    )


def _folder(settings: PluginSettings) -> Path:
    return Path(settings.plugin if isinstance(settings.plugin, str) else settings.plugin[0])


def _is_plugin(class_loader: JavaObject, name: str) -> bool:
    return _constructible(class_loader, name, _PLUGIN) is not None


def _constructible(
    class_loader: JavaObject, name: str, interface: str
) -> Callable[[str], JavaObject] | None:
    """Return what makes an object of a class that implements an interface, from the name of a
    connector; None for other classes.
    """
    try:
        candidate = java_class("java.lang.Class").forName(java_text(name), False, class_loader)
    except jpype.JException:
        return None
    is_abstract = int(candidate.getModifiers()) & _ABSTRACT
    if is_abstract or not java_class(interface).class_.isAssignableFrom(candidate):
        return None
    # Base classes of plugins have other constructors.
    constructors = {
        tuple(str(each.getName()) for each in constructor.getParameterTypes()): constructor
        for constructor in candidate.getDeclaredConstructors()
    }
    if () in constructors:
        return lambda _: constructors[()].newInstance()
    if interface == _FACTORY and ("java.lang.String",) in constructors:
        return lambda connector: constructors["java.lang.String",].newInstance(java_text(connector))
    return None


def _instance(class_loader: JavaObject, name: str) -> JavaObject:
    try:
        plugin = class_loader.loadClass(java_text(name))
    except jpype.JException as error:
        raise ConnectorError(
            f"The plugin has no class {name}",
            code="CONFIGURATION_UNAVAILABLE",
            hint="Check the name and the folder of the plugin's jars.",
        ) from error
    return java_class(_PLUGIN) @ plugin.getDeclaredConstructor().newInstance()


def _find_factory(plugin: JavaObject, name: str | None) -> JavaObject:
    factories = list(plugin.getConnectorFactories())
    names = [str(factory.getName()) for factory in factories]
    if name is None and len(factories) == 1:
        return factories[0]
    if name in names:
        return factories[names.index(name)]
    raise ConnectorError(
        f"The plugin has no connector {name}"
        if name
        else f"The plugin has {len(names)} connectors",
        code="CATALOG_NOT_AVAILABLE",
        hint=f"Name one of its connectors: {', '.join(names) or 'it has none'}.",
    )


def _create(factory: JavaObject, settings: PluginSettings, context: JavaObject) -> JavaObject:
    properties = java_class("java.util.HashMap")()
    for key, value in settings.properties.items():
        properties.put(java_text(key), java_text(str(value)))
    # Airlift's bootstrap prints every property unless this one is set.
    properties.putIfAbsent(java_text("bootstrap.quiet"), java_text("true"))
    try:
        return factory.create(java_text(settings.catalog), properties, context)
    except jpype.JException as error:
        mistakes = configuration_mistakes(str(error.getMessage()))
        if any("bootstrap.quiet" in mistake for mistake in mistakes):
            properties.remove(java_text("bootstrap.quiet"))
            return factory.create(java_text(settings.catalog), properties, context)
        if not mistakes or _lacks_type(error):
            raise
        raise ConnectorError(
            f"The connector {factory.getName()} rejects its properties: {'; '.join(mistakes)}",
            code="CONFIGURATION_INVALID",
            hint="Correct the properties of the catalog.",
        ) from error


def _types() -> tuple[JavaObject, JavaObject]:
    registry = java_class("io.trino.metadata.TypeRegistry")(
        java_class("io.trino.spi.type.TypeOperators")(), java_class("io.trino.FeaturesConfig")()
    )
    return registry, java_class("io.trino.type.InternalTypeManager")(registry)


def _add_types(registry: JavaObject, plugins: Sequence[JavaObject]) -> int:
    count = 0
    for plugin in plugins:
        for sql_type in plugin.getTypes():
            registry.addType(sql_type)
            count += 1
        for parametric_type in plugin.getParametricTypes():
            registry.addParametricType(parametric_type)
            count += 1
    return count


def _lacks_type(error: JavaObject | None) -> bool:
    if error is None or isinstance(error, java_class("io.trino.spi.type.TypeNotFoundException")):
        return error is not None
    # Guice collects the exceptions of constructors; its classes are those of the plugin.
    messages = error.getErrorMessages() if hasattr(error, "getErrorMessages") else ()
    return _lacks_type(error.getCause()) or any(_lacks_type(each.getCause()) for each in messages)


def _other_plugins(
    class_loader: JavaObject, paths: Sequence[Path], plugin: JavaObject | None
) -> list[JavaObject]:
    own_name = "" if plugin is None else str(plugin.getClass().getName())
    return [
        _instance(class_loader, name)
        for path in paths
        for name in implementing_classes(path)
        if name != own_name and _is_plugin(class_loader, name)
    ]


def _connector_context(
    version: SpiVersion, types: JavaObject, class_loader: JavaObject
) -> JavaObject:
    base = java_class("io.trino.testing.TestingConnectorContext")()
    node = jpype.JProxy(
        "io.trino.spi.Node",
        dict={
            "getHost": lambda: java_text("127.0.0.1"),
            "getHostAndPort": lambda: java_class("io.trino.spi.HostAddress").fromParts(
                java_text("127.0.0.1"), 8080
            ),
            "getNodeIdentifier": lambda: java_text("notebook"),
            "getVersion": lambda: java_text(version.number),
            "isCoordinator": lambda: True,
        },
    )
    own: dict[str, Any] = {
        "getCurrentNode": lambda: node,
        "getTypeManager": lambda: types,
        "getSpiVersion": lambda: java_text(version.number),
        "duplicatePluginClassLoader": lambda: class_loader,
    }
    methods = java_class("io.trino.spi.connector.ConnectorContext").class_.getMethods()
    answers = {
        name: getattr(base, name)
        for name in {str(method.getName()) for method in methods}
        if name not in own
    }
    return jpype.JProxy("io.trino.spi.connector.ConnectorContext", dict={**answers, **own})


@contextmanager
def _class_loader(class_loader: JavaObject) -> Iterator[None]:
    thread = java_class("java.lang.Thread").currentThread()
    before = thread.getContextClassLoader()
    thread.setContextClassLoader(class_loader)
    try:
        yield
    finally:
        thread.setContextClassLoader(before)
