package org.junit.jupiter.api;

import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;

/** JUnit's annotation, as far as written tests use it. */
@Retention(RetentionPolicy.RUNTIME)
public @interface Test {}
