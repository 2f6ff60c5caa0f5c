"""Functions that Trino has and this engine refuses, with the reason that the error and the documentation give."""

from __future__ import annotations

from typing import Final

__all__ = ["REFUSED"]

_SKETCH: Final = "its type, a sketch, does not exist in Spark with Trino's content"
_APPROXIMATE: Final = "Trino's approximation cannot be reproduced, and another would differ"
_HASH: Final = "Spark SQL has no such hash"
_STATISTICS: Final = "Spark SQL lacks the error function and the beta function"
_MODEL: Final = "machine learning is no part of this engine"
_GEO: Final = "geospatial types do not exist here"
_VECTOR: Final = "the order in which Trino adds the products up is not fixed in Spark SQL"

_GEOSPATIAL: Final = tuple(
    """
    bing_tile bing_tile_at bing_tile_children bing_tile_coordinates bing_tile_parent bing_tile_polygon bing_tile_quadkey bing_tile_zoom_level
    bing_tiles_around convex_hull_agg expand_envelope flatten_geometry_collections from_encoded_polyline from_geojson_geometry
    geometry_from_hadoop_shape geometry_invalid_reason geometry_nearest_points geometry_to_bing_tiles geometry_to_dissolved_bing_tiles
    geometry_union geometry_union_agg great_circle_distance line_interpolate_point line_interpolate_points line_locate_point simplify_geometry
    spatial_partitioning spatial_partitions st_area st_asbinary st_asencodedpolyline st_astext st_boundary st_buffer st_centroid st_contains st_convexhull
    st_coorddim st_crosses st_difference st_dimension st_disjoint st_distance st_endpoint st_envelope st_envelopeaspts st_equals
    st_exteriorring st_geometries st_geometryfromtext st_geometryn st_geometrytype st_geomfrombinary st_geomfromkml st_interiorringn
    st_interiorrings st_intersection st_intersects st_isclosed st_isempty st_isring st_issimple st_isvalid st_length st_linefromtext
    st_linestring st_multipoint st_numgeometries st_numinteriorring st_numpoints st_overlaps st_point st_pointn st_points st_polygon
    st_relate st_startpoint st_symdifference st_touches st_union st_within st_x st_xmax st_xmin st_y st_ymax st_ymin
    to_encoded_polyline to_geojson_geometry to_geometry to_spherical_geography
    """.split()  # noqa: SIM905 - a hundred names in quotation marks would say no more
)
REFUSED: Final[dict[str, str]] = {
    **dict.fromkeys(("approx_set", "empty_approx_set", "merge", "make_set_digest", "merge_set_digest"), _SKETCH),
    **dict.fromkeys(("intersection_cardinality", "jaccard_index", "hash_counts", "qdigest_agg", "tdigest_agg"), _SKETCH),
    **dict.fromkeys(("value_at_quantile", "values_at_quantiles", "quantile_at_value"), _SKETCH),
    **dict.fromkeys(("approx_percentile", "approx_most_frequent", "numeric_histogram"), _APPROXIMATE),
    **dict.fromkeys(("xxhash64", "murmur3", "spooky_hash_v2_32", "spooky_hash_v2_64", "checksum"), _HASH),
    **dict.fromkeys(("normal_cdf", "inverse_normal_cdf", "beta_cdf", "inverse_beta_cdf"), _STATISTICS),
    **dict.fromkeys(("t_cdf", "t_pdf", "wilson_interval_lower", "wilson_interval_upper"), _STATISTICS),
    **dict.fromkeys(("learn_classifier", "learn_regressor", "learn_libsvm_classifier", "learn_libsvm_regressor"), _MODEL),
    **dict.fromkeys(("classify", "regress", "features"), _MODEL),
    **dict.fromkeys(("cosine_similarity", "cosine_distance", "dot_product", "euclidean_distance"), _VECTOR),
    **dict.fromkeys(_GEOSPATIAL, _GEO),
    **dict.fromkeys(("bar", "color", "render", "rgb"), "colors of a terminal do not exist here"),
    **dict.fromkeys(
        ("to_ieee754_32", "to_ieee754_64", "from_ieee754_32", "from_ieee754_64"), "Spark SQL does not show a number's bits"
    ),
    "word_stem": "Spark SQL has no stemmer",
    **dict.fromkeys(("parse_presto_data_size", "parse_data_size"), "it is of use only to Trino's administrators"),
    "exclude_columns": "it is a function that gives a table; name the columns in the SELECT list",
    "table_changes": "it is a function that gives a table of one connector; Result.diff shows what a statement changed",
    "version": "there is no Trino server whose version it would be",
    "current_groups": "there are no groups of users here",
    "convert_to_char": "the Teradata functions are no part of Trino's own set",
    "to_char": "the Teradata functions are no part of Trino's own set",
    "to_date": "the Teradata functions are no part of Trino's own set; write CAST(... AS date)",
    "to_timestamp": "the Teradata functions are no part of Trino's own set; write CAST(... AS timestamp)",
    "json_array_get": "Trino itself calls its meaning broken; write json_extract(value, '$[0]')",
}
